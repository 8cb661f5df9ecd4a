"""The tables that reproductions run on, and what stands in for those that cannot be had."""

from __future__ import annotations

from anonymip.experiments.reproductions.specification import Source

_CENSUS = "500,000 records of CENSUS (IPUMS USA)"

CENSUS_10K = Source(
    original=f"{_CENSUS}, 8 attributes",
    nearest="census-10k",
    remark="the 10,000 records of it that the authors gave out, with the domains of the paper",
    generated="census:10000,8,1",
)
CENSUS_100K = Source(
    original=f"{_CENSUS}, sex, age, marital status and race as numbers",
    nearest="census-100k",
    remark="100,000 records of it; smaller tables are its first records",
    generated="census:100000,4,1",
)
CENSUS_1K = Source(
    original=f"{_CENSUS}, 8 attributes as numbers",
    nearest="census-1k",
    remark="the 1,000 records of it that the authors gave out",
    generated="census:1000,8,1",
)
CENSUS_64K = Source(
    original=f"{_CENSUS}, 8 attributes",
    nearest="census:64000,8,1",
    remark="generated records, since no more than 10,000 with these attributes can be had",
    generated="census:64000,8,1",
)
