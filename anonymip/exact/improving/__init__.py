"""What lowers the loss of given classes: moves of records, and windows solved anew."""
