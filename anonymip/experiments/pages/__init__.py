"""Pages of HTML about releases and comparisons, each complete in itself."""
