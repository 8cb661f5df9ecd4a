"""Drawing which matched record a row is published for."""
