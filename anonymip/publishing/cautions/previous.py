"""What lies in the place of a release before it is written."""

from __future__ import annotations

import os
from pathlib import Path

from anonymip.errors import InputError
from anonymip.privacy import is_table_of
from anonymip.publishing.manifest import manifest_path


def cut_off(path: str | Path) -> str | None:
    """Return what shows that a run was cut off while it put a release in place, None if nothing.

    A release is put in place manifest first and table last, so that a table never lies beside a
    manifest that was there before it.

    Parameters
    ----------
    path
        Of the table; the manifest lies beside it.
    """
    table = Path(path)
    manifest = manifest_path(table)
    if not os.path.isfile(manifest):
        return None
    if not os.path.lexists(table):
        return (
            f"{manifest} lies there without its table: a run that wrote both was cut off, or the "
            "table was taken away"
        )
    try:
        mismatch = os.path.isfile(table) and is_table_of(table, manifest) is False
    except InputError:
        # What is no manifest was not left by a run that was cut off.
        mismatch = False
    if not mismatch:
        return None
    return (
        f"{table} is not the table that {manifest} was written for: a run that wrote both was cut "
        "off, or one of them was changed since"
    )
