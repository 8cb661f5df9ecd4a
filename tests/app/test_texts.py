"""All that the page says stands in one file, and all of that file is said."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import anonymip.app

FOLDER = Path(str(anonymip.app.__file__)).parent
CODE = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.glob("*.py"))
TEXTS = tomllib.loads((FOLDER / "texts.toml").read_text(encoding="utf-8"))


def test_every_key_is_there_and_used() -> None:
    """No text is missing, and a translation has none to make that nobody reads."""
    found = re.findall(r"""["']([a-z]+)\.([a-z_]+)["']""", CODE)
    named = {one for one in found if one[1] not in ("json", "zip", "toml")}  # names of files
    known = {(section, key) for section, texts in TEXTS.items() for key in texts}
    sections = {section for section, _ in known}
    whole = set(re.findall(r'words\("([a-z_]+)"\)', CODE))
    formed = set(re.findall(r'say\(f"([a-z]+)\.\{', CODE))
    assert {one for one in named if one[0] in sections} - known == set()
    assert whole | formed <= sections
    assert {one for one in known - named if one[0] not in whole | formed} == set()


def test_pages_have_no_words_of_their_own() -> None:
    """What a step shows comes from the file: none hands a sentence to the page."""
    shown = re.findall(r'(?:heading|told|button|label|notify)\(\s*"([^"]*)"', CODE)
    assert {one for one in shown if one} == set()
