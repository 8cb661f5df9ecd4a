"""The language of losses: records, expressions, tables, compilation."""
