"""Named instances, small tables of the papers and generators."""
