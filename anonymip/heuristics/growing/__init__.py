"""Growing classes record by record, and completing what is left over."""
