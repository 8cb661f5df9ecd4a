"""What is allowed, and what an assignment publishes: one file a recoding."""

from anonymip.recodings.equivalence import EquivalenceClasses
from anonymip.recodings.recoding import Recoding, SizeLimit

__all__ = ["EquivalenceClasses", "Recoding", "SizeLimit"]
