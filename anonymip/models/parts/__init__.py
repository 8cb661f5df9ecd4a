"""What the formulations share: contexts, losses, rules, scaling."""
