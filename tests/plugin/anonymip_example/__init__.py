"""An example of what a package can add to AnonyMIP: methods, an objective, a recoding."""
