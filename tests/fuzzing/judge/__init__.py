"""A judge of solutions and releases of tiny tables, in exact fractions.

Written after the definitions and ``docs/format.md`` alone: nothing of the package is imported, so
that an error in it cannot hide behind the same error here.
"""
