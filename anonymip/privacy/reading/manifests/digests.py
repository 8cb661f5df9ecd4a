"""Whether a table is the one that a manifest was written for."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anonymip.errors import InputError
from anonymip.privacy.reading.manifests.manifest import read_manifest


def is_table_of(
    release: str | Path | Any, manifest: Mapping[str, Any] | str | Path | None = None
) -> bool | None:
    """Return whether a manifest was written for this very file.

    Parameters
    ----------
    release
        Path of the table.
    manifest
        The manifest, its path, or None: the file ``<release>.manifest.json``.

    Returns
    -------
    bool or None
        None if that cannot be said: the manifest holds no digest, as those of version 0.6 and
        before, or the table is a data frame, which has no bytes of its own.

    Raises
    ------
    InputError
        If a file is missing or unreadable, or the manifest is malformed.
    """
    return _has_digest(release, read_manifest(manifest, release).sha256)


def digest_finding(release: str | Path | Any, digest: str | None) -> tuple[str, tuple[str, ...]]:
    """Return what is checked of a digest, and what is wrong with it.

    Parameters
    ----------
    release
        Path of the table, or a data frame.
    digest
        SHA-256 of the table's file, in hexadecimal digits; None if the manifest holds none.
    """
    this = "the table is the one that the manifest was written for"
    is_table = _has_digest(release, digest)
    if is_table is None:
        why = "the manifest has no table.sha256" if digest is None else "a data frame has no digest"
        return f"Not checked: that {this}, since {why}.", ()
    problem = (
        "The table is not the one that the manifest was written for: a run that wrote both was cut "
        "off, or one of them was changed since."
    )
    return f"T{this[1:]}.", () if is_table else (problem,)


def _has_digest(release: str | Path | Any, digest: str | None) -> bool | None:
    """Return whether a file has this digest; None if there is no digest, or no file."""
    if digest is None or not isinstance(release, str | os.PathLike):
        return None
    try:
        with Path(release).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest() == digest
    except OSError as error:
        raise InputError(
            f"{release} cannot be read: {error.strerror}", remedy="Check the file"
        ) from None
