"""Fuzzing of files: valid ones are damaged, read by the command line, and what ends it is judged.

``python -m tests.fuzzing --files 2000 --seed 1 [--only FORMAT] [--case SEED:INDEX]``
"""
