"""Certificates: proofs of a bound for those who trust no solver."""

from anonymip.certificates.dual_proof import ColumnPool, CutDual, DualProof

__all__ = ["ColumnPool", "CutDual", "DualProof"]
