"""Recodings: which assignments are allowed, and what each publishes."""

from anonymip.recodings.equivalence import EquivalenceClasses
from anonymip.recodings.freeform import KK, Freeform, KConcealment, KOne, OneK
from anonymip.recodings.full_domain import FullDomain
from anonymip.recodings.masks import Mask
from anonymip.recodings.pattern_levels import PatternLevels
from anonymip.recodings.patterns import PatternGuided
from anonymip.recodings.recoding import Recoding, SizeLimit
from anonymip.recodings.rules.diversity import Diversity
from anonymip.recodings.rules.limits import Apart, Cap, Limit

__all__ = [
    "KK",
    "Apart",
    "Cap",
    "Diversity",
    "EquivalenceClasses",
    "Freeform",
    "FullDomain",
    "KConcealment",
    "KOne",
    "Limit",
    "Mask",
    "OneK",
    "PatternGuided",
    "PatternLevels",
    "Recoding",
    "SizeLimit",
]
