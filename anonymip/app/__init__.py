"""The page for people who do not write code, served to this machine's browser alone."""
