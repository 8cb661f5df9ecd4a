"""The command line: parse, call, print."""

from __future__ import annotations


def main() -> None:
    """Run the command line and exit with its code."""
    from anonymip.cli.app import run

    raise SystemExit(run())
