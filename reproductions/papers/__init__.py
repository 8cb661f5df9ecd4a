"""The tables and figures of each paper, as data: what runs, what is drawn, what is said."""
