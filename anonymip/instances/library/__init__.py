"""Named instances, small tables of the papers, generators and reductions."""
