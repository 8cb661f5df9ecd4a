"""Proofs and exact solutions of pattern problems."""
