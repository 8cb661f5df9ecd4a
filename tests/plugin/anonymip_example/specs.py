"""Methods as data: listing them imports neither NumPy nor the methods."""

from anonymip.methods import MethodSpec

FIXED_SIZE_CUT = MethodSpec(
    "fixed-size-cut",
    recoding="fixed-size",
    role="heuristic",
    target="anonymip_example.cutting:fixed_size_cut",
    source="an example from outside",
)
