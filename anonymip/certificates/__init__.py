"""What proves a bound to those who trust no solver."""

from anonymip.certificates.dual_proof import ColumnPool, CutDual, DualProof

__all__ = ["ColumnPool", "CutDual", "DualProof"]
