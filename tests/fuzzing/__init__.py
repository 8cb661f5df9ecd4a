"""Fuzzing: tables at the edges of what numbers can say, judged by code of its own.

``python -m tests.fuzzing --solves 20000 --seed 1 --jobs 2 [--only AREA] [--case SEED:INDEX]``
"""
