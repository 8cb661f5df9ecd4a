"""Cheapest assignments, flows, edge covers and factors."""
