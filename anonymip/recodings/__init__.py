"""What is allowed, and what an assignment publishes: one file a recoding."""

from anonymip.recodings.diversity import Diversity
from anonymip.recodings.equivalence import EquivalenceClasses
from anonymip.recodings.freeform import Freeform
from anonymip.recodings.limits import Apart, Cap, Limit
from anonymip.recodings.recoding import Recoding, SizeLimit
from anonymip.recodings.weaker import KK, KConcealment, KOne, OneK

__all__ = [
    "KK",
    "Apart",
    "Cap",
    "Diversity",
    "EquivalenceClasses",
    "Freeform",
    "KConcealment",
    "KOne",
    "Limit",
    "OneK",
    "Recoding",
    "SizeLimit",
]
