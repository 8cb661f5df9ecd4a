"""Parts shared by the formulations: contexts, losses, rules, scaling."""
