"""Recodings: which assignments are allowed, and what each publishes."""

from anonymip.recodings.equivalence import EquivalenceClasses as EquivalenceClasses
from anonymip.recodings.freeform import KK as KK
from anonymip.recodings.freeform import Freeform as Freeform
from anonymip.recodings.freeform import KConcealment as KConcealment
from anonymip.recodings.freeform import KOne as KOne
from anonymip.recodings.freeform import OneK as OneK
from anonymip.recodings.full_domain import FullDomain as FullDomain
from anonymip.recodings.pattern_levels import PatternLevels as PatternLevels
from anonymip.recodings.patterns import Mask as Mask
from anonymip.recodings.patterns import PatternGuided as PatternGuided
from anonymip.recodings.recoding import Recoding as Recoding
from anonymip.recodings.recoding import SizeLimit as SizeLimit
from anonymip.recodings.rules.diversity import Diversity as Diversity
from anonymip.recodings.rules.limits import Apart as Apart
from anonymip.recodings.rules.limits import Cap as Cap
from anonymip.recodings.rules.limits import Limit as Limit
