"""The losses, one file each, and how a loss of a user is found and loaded."""
