"""Published rows: what they show, which are equal, which cover a record."""
