"""Lower bounds on the loss of any release."""
