"""Certificates: duals in whole numbers, and a tree over the sets that they leave."""

from anonymip.exact.certifying.certificate import Certificate, check_certificate
from anonymip.exact.certifying.certifying import certify

__all__ = ["Certificate", "certify", "check_certificate"]
