"""Split & Carry: exact solves of consecutive segments whose last records are carried over."""
