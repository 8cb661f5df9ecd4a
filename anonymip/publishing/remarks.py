"""What of the original has no place in a release, in sentences."""

from __future__ import annotations

from anonymip.publishing.release import Release


def what_is_gone(release: Release, *, show_names: bool = False) -> list[str]:
    """Return how many records and which columns of the original are not published.

    The number of suppressed records is reported wherever some may be suppressed, also if it is 0.

    Parameters
    ----------
    release
        What is published.
    show_names
        Whether columns without a role are named: a name that nobody declared may be a value.
    """
    gone, problem = release.manifest["left_out"], release.solution.problem
    lines = []
    if gone["missing"]:
        lines.append(f"{_are(gone['missing'], ' with missing values')} left out")
    if getattr(problem.recoding, "suppression", False):
        starred = release.solution.assignment.suppressed - gone["suppressed"]
        lines.append(f"{_are(starred + gone['suppressed'])} suppressed{_fate(release, starred)}")
    if gone["columns"]:
        lines.append(f"dropped columns are not published: {', '.join(gone['columns'])}")
    if gone["undeclared_columns"]:
        nameless = "columns without a role are not published"
        names = ", ".join(problem.microdata.undeclared)
        lines.append(f"{nameless}: {names if show_names else gone['undeclared_columns']}")
    return lines


def _fate(release: Release, starred: int) -> str:
    if starred:
        return ", and published as rows of stars"
    if not release.manifest["left_out"]["suppressed"]:
        return ""
    return " and left out of the table; in the loss each counts as a row of stars"


def _are(count: int, what: str = "") -> str:
    return f"1 record{what} is" if count == 1 else f"{count} records{what} are"
