"""Readers of tables, cells, schemas and hierarchies, written for the verification alone."""
