"""The words of the page: all stand in texts.toml, so that a translation is a file."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _texts() -> dict[str, dict[str, Any]]:
    return tomllib.loads(files("anonymip.app").joinpath("texts.toml").read_text("utf-8"))


def words(key: str) -> Any:
    """Return what stands under a key, ``"question.title"``: a text, or texts by their keys."""
    section, _, name = key.partition(".")
    return _texts()[section][name] if name else _texts()[section]


def say(key: str, **values: object) -> str:
    """Return the text of a key with values put in; they are shown as they are, never as markup."""
    text: str = words(key)
    return text.format(**values) if values else text


def capital(text: str) -> str:
    """Return a sentence of the toolkit as a page begins one, without the point at its end.

    What it calls by the names of arguments is called as the page calls it.
    """
    for theirs, ours in words("plain").items():
        text = text.replace(theirs, ours)
    first = text[:1] if text.startswith("k ") else text[:1].upper()
    return f"{first}{text[1:].removesuffix('.')}"
