"""The digest of a table in a certificate, computed as the page on certificates says."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import anonymip


def test_the_digest_is_that_of_the_text_the_page_names(tmp_path: Path) -> None:
    """From the file alone: constant, terms and records as Python writes them."""
    problem = anonymip.Problem(anonymip.load_instance("health-records"), k=3)
    anonymip.certify(anonymip.solve(problem)).write(tmp_path / "proof.json")
    given = json.loads((tmp_path / "proof.json").read_text(encoding="utf-8"))["problem"]
    text = json.dumps([given["constant"], given["terms"], given["records"]])
    assert hashlib.sha256(text.encode("ascii")).hexdigest() == given["sha256"]
