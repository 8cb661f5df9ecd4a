"""The restricted master problem over groups of records, and its relaxation."""
