"""The chain of segments for freeform covers."""
