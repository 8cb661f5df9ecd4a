"""What a publisher should know before a release goes out."""
