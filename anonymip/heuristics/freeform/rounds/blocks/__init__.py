"""Records in blocks of neighbours: bounds rule out most of them."""
