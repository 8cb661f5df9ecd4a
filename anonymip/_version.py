"""The version of the package, told once in it."""

__version__ = "0.7.0"
