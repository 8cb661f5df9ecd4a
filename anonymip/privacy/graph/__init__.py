"""The graph of records and published rows that covers are verified on."""
