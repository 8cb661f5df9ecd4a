"""An example of what a package can add to AnonyMIP: all that entry points register."""
