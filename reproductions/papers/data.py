"""The tables that reproductions run on, and what stands in for those that cannot be had."""

from __future__ import annotations

from reproductions.specification import Source

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
CENSUS_1K_MIXED = Source(
    original=f"{_CENSUS}, 8 attributes, 2 of them as numbers",
    nearest="census-1k-mixed",
    remark="the 1,000 records of it that the authors gave out",
    generated="census:1000,8,1",
)
CENSUS_10K_NUMERIC = Source(
    original=f"20,000 of {_CENSUS}, 8 attributes as numbers",
    nearest="census-10k-numeric",
    remark="10,000 records of it that the authors of another paper gave out",
    generated="census:10000,8,1",
)
CENSUS_35 = Source(
    original=f"{_CENSUS}, 15 to 35 attributes as numbers",
    nearest="census:20000,35,1",
    remark="generated records with the paper's ranges and variances (its Tables 3, 9 and 10)",
    generated="census:20000,35,1",
)
FARS = Source(
    original="FARS, month, age, sex and injury severity as numbers",
    nearest="fars",
    remark="10,093 records of it: month, sex and race as categories, age as a number",
    generated="census:10093,4,1",
)
_SETS = "all attributes as sets of values, with the domains of Doka et al. 2015"
CENSUS_SETS = Source(
    original="100,000 to 500,000 records of CENSUS (IPUMS USA)",
    nearest="census",
    remark=f"10,000 records of it, {_SETS}",
    generated="census:10000,8,1",
    file="census_ipums/census_10k_8attr_doka.csv",
    schema="census",
)
CENSUS_OCCUPATION = Source(
    original="100,000 records of CENSUS (IPUMS USA), occupation sensitive",
    nearest="census-occupation",
    remark=f"10,000 records of it, {_SETS}",
    generated="clinic-12",
    file="census_ipums/census_10k_8attr_doka.csv",
    schema="census_occupation",
)
ADULT_SETS = Source(
    original="all 32,561 records of UCI Adult",
    nearest="adult",
    remark="the same, attributes in the order of the file, as sets of values; missing is a value",
    generated="census:32561,15,1",
    file="adult/adult.data",
    schema="adult",
)
ADULT_KINDS = Source(
    original="32,561 records of UCI Adult without the final weight; in Adult-2 9 columns",
    nearest="adult",
    remark="the same; what is missing is a value",
    generated="census:32561,14,1",
    file="adult/adult.data",
    schema="adult_kinds",
)
NURSERY = Source(
    original="12,960 records of UCI Nursery, 8 attributes",
    nearest="nursery",
    remark="the same, as categories",
    generated="census:12960,8,1",
)
CMC = Source(
    original="1,473 records of UCI CMC, 10 attributes",
    nearest="cmc",
    remark="the same",
    generated="census:1473,10,1",
    file="cmc/cmc.data",
    schema="cmc",
)
CANADA = Source(
    original="324,489 records of Canada Vigilance (adverse reactions), 9 attributes",
    nearest="census:100000,9,1",
    remark="generated census records: the original cannot be had, and no real data here are as "
    "large; what hangs on its values, as blocks of equal rows, cannot show",
    generated="census:100000,9,1",
)
ADULT_TREES = Source(
    original="no data",
    nearest="adult-hierarchies",
    remark="samples of UCI Adult with the hierarchies commonly used for it",
    generated="clinic-12",
)
EXAMPLES = Source(
    original="Tables 1a and 4a",
    nearest="person20",
    remark="health-records and person20 are these tables",
    generated="person20",
)
