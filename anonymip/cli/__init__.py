"""The command line: parse, call, print."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        from anonymip.cli.app import run

        code = run()
    except KeyboardInterrupt:
        # Importing takes a second or two, in which nothing else listens.
        sys.stderr.write("interrupted\n")
        code = 130
    raise SystemExit(code)
