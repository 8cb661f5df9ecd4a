"""The one engine of set partitioning: columns, restricted master, cuts, and the best of a pool."""
