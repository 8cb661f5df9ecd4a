"""What an adversary learns from a release: attacks and their probabilities."""
