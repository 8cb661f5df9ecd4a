"""Tables and figures of the papers: what is run, how it is drawn, and what the papers say of it."""
