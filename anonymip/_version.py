"""The version of the package, stated once."""

__version__ = "0.18.0"
