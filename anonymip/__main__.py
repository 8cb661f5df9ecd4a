"""``python -m anonymip``: the command line."""

from anonymip.cli import main

main()
