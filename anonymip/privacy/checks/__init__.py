"""What a release must keep, one check a file."""
