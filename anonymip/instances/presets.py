"""Suggestions of roles that follow a rule of law: a start, and no legal advice."""

from __future__ import annotations

import re
from typing import Any

#: What 45 CFR 164.514(b)(2)(i) removes, with its letter, and words of names that say so.
_REMOVED = {
    "(G) social security numbers": r"ssn|social security.*|sozialversicherung\w*",
    "(E) fax numbers": r"\w*fax\w*",
    "(D) telephone numbers": r"\w*phone\w*|\w*telefon\w*|tel|mobile|handy",
    "(F) e-mail addresses": r"e ?mails?( address)?|mail",
    "(N) addresses of the web": r"urls?|web ?site|homepage",
    "(O) internet protocol addresses": r"ips?|ip ?v?[46]|ip address",
    "(H) medical record numbers": (
        r"mrn|medical record.*|(patient|chart|case|fall)\w*? ?(id|no|nr|num|number|key)"
    ),
    "(I) health plan beneficiary numbers": (
        r".*beneficiary.*|(insurance|member|policy|versicher\w*?) ?(id|no|nr|number|nummer)"
    ),
    "(J) account numbers": r"\w*account\w*|iban|bic|\w*konto\w*",
    "(K) certificate and licence numbers": (
        r"\w*certificate\w*|\w*licen[cs]e\w*|passport\w*|\w*ausweis\w*"
    ),
    "(L) vehicle identifiers": r"vin|vehicle\w*|plate|kennzeichen",
    "(M) device identifiers": r"device\w*|serial\w*|imei|mac",
    "(P) biometric identifiers": r"biometric\w*|finger ?prints?|voice ?prints?",
    "(Q) photographs": r"\w*photo\w*|images?|pictures?|bild|foto",
    "(A) names": r"\w*names?|nom|prenom|nombre|apellidos?",
    "(B) areas smaller than a state": (
        r"address|adresse|anschrift|\w*street|\w*strasse|city|town|village|ort|gemeinde|county|"
        r"(land)?kreis|precinct|parish|latitude|longitude|lat|lon|census (tract|block)"
    ),
}
_ZIP = re.compile(r"\b(zip|zip ?codes?|zip ?3|plz|post(al)? ?codes?|postcode|postleitzahl|zcta)\b")
_AGE = re.compile(r"\b(age|ages|alter|age (years?|in years|at \w+)|years old)\b")
_BIRTH = re.compile(r"birth|born|dob|geb")
#: Of three digits, areas with 20,000 persons or fewer in the census of 2000, by the guidance of the
#: Department of Health and Human Services on the method (26 November 2012).
_SMALL_AREAS = (
    *("036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878"),
    *("879", "884", "890", "893"),
)
_NOTES = (
    "A start by the safe harbor of HIPAA, 45 CFR 164.514(b)(2), found from names and forms of",
    "columns. It is no legal advice, and does not know what the columns mean. Check yourself that",
    "(i) all eighteen identifiers (A) to (R) are gone, in free texts too, of patients, relatives,",
    "employers and household members; (ii) nothing that is left is known to you to identify",
    "a person; ZIP codes of areas with 20,000 persons or fewer, by current census data, are 000",
    f"(in the census of 2000 those of {', '.join(_SMALL_AREAS)}).",
    "k-anonymity is asked for beside it: the rule itself does not.",
)


def safe_harbor(
    words: str, kind: str, looks: str, pattern: str | None
) -> tuple[str, str, dict[str, Any]] | None:
    """Return what the safe harbor method makes of a column; None leaves it as it is.

    `words`: the words of its name, in small letters. Returns: role, why, and what a schema declares
    beside what it declared.
    """
    if _ZIP.search(words):
        if pattern == "999":
            return "quasi-identifier", "(B) three digits: write 000 for the areas named above", {}
        return "drop", "(B) ZIP codes: cut them to three digits before, as text", {}
    for what, names in _REMOVED.items():
        if re.search(rf"\b({names})\b", words):
            return "drop", f"{what}, by its name", {}
    if kind == "date":
        why = "(C) dates: the year alone"
        if _BIRTH.search(words):
            why += "; write at_least = the year 89 years before the data: older are one group"
        return "quasi-identifier", why, {"precision": "year"}
    if looks.startswith("dates"):
        return "drop", "(C) dates, of which no year could be read", {}
    if kind == "numeric" and _AGE.search(words):
        return "quasi-identifier", "(C) ages above 89 as 90+", {"at_most": 90}
    return None


#: By name what suggests a role, and what else is to be known of it.
PRESETS = {"hipaa-safe-harbor": (safe_harbor, _NOTES)}
