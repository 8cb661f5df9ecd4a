"""Instances by name: small tables of the papers, generated ones, and the benchmark data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from anonymip.errors import InputError, argument, did_you_mean
from anonymip.instances.hierarchies.hierarchy import read_hierarchy
from anonymip.instances.library.catalogue import PREFIX, find_entry
from anonymip.instances.library.fetching import (
    data_file,
    read_extract,
    read_numbers,
    with_categories,
)
from anonymip.instances.library.generators import census
from anonymip.instances.library.reductions import (
    accident_records,
    aggarwal_table,
    clinic_table,
    health_records,
    quality_grades,
    wong_table,
)
from anonymip.instances.microdata import Microdata
from anonymip.instances.schema import Schema, read_schema
from anonymip.instances.table_format import TableFormat

#: More do not fit into the memory of an ordinary computer.
_MOST_GENERATED = 50_000_000


@dataclass(frozen=True)
class NamedInstance:
    """An instance that can be asked for by name.

    Parameters
    ----------
    name
        The name.
    description
        What it is, in one line.
    source
        Where it comes from.
    load
        Returns it.
    files
        Files of the data folder it needs, relative to it.
    """

    name: str
    description: str
    source: str
    load: Callable[[], Microdata]
    files: tuple[str, ...] = ()

    def paths(self) -> tuple[Path, ...]:
        """Return where its files lie.

        Raises
        ------
        InputError
            If one is not here.
        """
        return tuple(data_file(name) for name in self.files)


def _extract(table: str, domains: str) -> Callable[[], Microdata]:
    return lambda: read_extract(table, domains)


def _codes(first: int, last: int) -> list[str]:
    """Return the domain of a categorical attribute whose values are numbered."""
    return [str(code) for code in range(first, last + 1)]


def _file(name: str, schema: Schema) -> Callable[[], Microdata]:
    return lambda: schema.read(data_file(name))


_ADULT = "sex,race,marital-status,education,native-country,workclass,occupation"
_ADULT_HIERARCHIES = {
    name: f"adult/hierarchies/adult_hierarchy_{name}.csv" for name in ["age", *_ADULT.split(",")]
}


def _adult_with_hierarchies() -> Microdata:
    """Return the complete records of Adult, all attributes with the hierarchies of the data."""
    table = data_file("adult/adult_arx_30162.csv")
    attributes = {
        name: {"hierarchy": read_hierarchy(data_file(file))}
        for name, file in _ADULT_HIERARCHIES.items()
    }
    schema = Schema(attributes, sensitive=("salary-class",), table=TableFormat(separator=";"))
    return schema.read(table)


# The columns of files without header.
_ADULT_RAW = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week"),
    *("native-country", "income"),
]
# Domains of Doka et al. 2015, Table 2: 79, 2, 17, 6, 9, 10, 83 and 51 values. Categories are codes;
# not all of them occur.
_CENSUS_10K: dict[str, dict[str, object]] = {
    "age": {"kind": "numeric", "integer": True, "domain": (15, 93)},
    "gender": {"kind": "categorical", "domain": _codes(1, 2)},
    "education": {"kind": "numeric", "integer": True, "domain": (1, 17)},
    "marital": {"kind": "categorical", "domain": _codes(1, 6)},
    "race": {"kind": "categorical", "domain": _codes(1, 9)},
    "work class": {"kind": "categorical", "domain": _codes(1, 10)},
    "country": {"kind": "categorical", "domain": _codes(1, 83)},
    "occupation": {"kind": "categorical", "domain": _codes(0, 50)},
}
_HEADLESS = TableFormat(separator=", ", header=False, columns=tuple(_CENSUS_10K))
#: Files and domains of the extracts of Liang & Samavi.
_CENSUS_1K = ("census_ipums/census_1k_8attr.txt", "census_ipums/census_8attr_domain_numerical.txt")
_CENSUS_1K_MIXED = (_CENSUS_1K[0], "census_ipums/census_8attr_domain_mixed.txt")
_CENSUS_100K = ("census_ipums/census_100k_4attr.txt", "census_ipums/census_4attr_domain.txt")


def _kinds(numeric: str, categorical: str) -> dict[str, dict[str, object]]:
    kinds: dict[str, dict[str, object]] = {}
    for name in numeric.split(",") if numeric else ():
        kinds[name] = {"kind": "numeric", "integer": True}
    for name in categorical.split(",") if categorical else ():
        kinds[name] = {"kind": "categorical"}
    return kinds


_INSTANCES = (
    NamedInstance(
        "health-records",
        "7 health records: age, sex, zipcode",
        "Liang & Samavi 2020, Table 1a",
        health_records,
    ),
    NamedInstance(
        "person20",
        "20 traffic accident records, 4 attributes",
        "Liang & Samavi 2020, Table 2 (FARS)",
        accident_records,
    ),
    NamedInstance(
        "wong-5",
        "5 patients: zip code, gender, age",
        "Wong, Mamoulis & Cheung 2010, Table 1",
        wong_table,
    ),
    NamedInstance(
        "aggarwal-4",
        "4 patients: age, race, gender, zip code",
        "Aggarwal et al. 2005, introduction",
        aggarwal_table,
    ),
    NamedInstance(
        "aggarwal-quality",
        "6 grades with their hierarchy of two levels",
        "Aggarwal et al. 2005, Section 2, Figure 1",
        quality_grades,
    ),
    NamedInstance(
        "clinic-12",
        "12 invented patients: age, town and job with hierarchies, sensitive diagnosis",
        "written for this package",
        clinic_table,
    ),
    NamedInstance(
        "adult",
        "30,162 complete census records, 8 attributes, sensitive salary class",
        "UCI Adult, incomplete records removed",
        _file(
            "adult/adult_arx_30162.csv",
            Schema(
                _kinds("age", _ADULT), sensitive=("salary-class",), table=TableFormat(separator=";")
            ),
        ),
        ("adult/adult_arx_30162.csv",),
    ),
    NamedInstance(
        "adult-hierarchies",
        "the same records, the 8 attributes hierarchical",
        "UCI Adult, incomplete records removed, with the hierarchies commonly used for it",
        _adult_with_hierarchies,
        ("adult/adult_arx_30162.csv", *_ADULT_HIERARCHIES.values()),
    ),
    NamedInstance(
        "adult-raw",
        "UCI Adult as published (32,561 records; incomplete ones are left out), 8 attributes",
        "UCI Machine Learning Repository, Adult",
        _file(
            "adult/adult.data",
            Schema(
                _kinds(
                    "age", "workclass,education,marital-status,occupation,race,sex,native-country"
                ),
                sensitive=("income",),
                drop=(
                    "fnlwgt",
                    "education-num",
                    "relationship",
                    "capital-gain",
                    "capital-loss",
                    "hours-per-week",
                ),
                table=TableFormat(
                    separator=", ",
                    header=False,
                    columns=tuple(_ADULT_RAW),
                    missing=("?",),
                    policy="drop",
                ),
            ),
        ),
        ("adult/adult.data",),
    ),
    NamedInstance(
        "nursery",
        "12,960 applications, 8 categorical attributes, sensitive classification",
        "UCI Machine Learning Repository, Nursery",
        _file(
            "nursery/nursery.data",
            Schema(
                _kinds("", "parents,has_nurs,form,children,housing,finance,social,health"),
                sensitive=("classification",),
            ),
        ),
        ("nursery/nursery.data",),
    ),
    NamedInstance(
        "cmc",
        "1,473 women, 9 attributes, sensitive contraceptive method",
        "UCI Machine Learning Repository, Contraceptive Method Choice",
        _file(
            "cmc/cmc.data",
            Schema(
                _kinds(
                    "wife_age,children_born",
                    "wife_education,husband_education,wife_religion,wife_working,"
                    "husband_occupation,SOL_index,media_exposure",
                ),
                sensitive=("contraceptive_method_use",),
            ),
        ),
        ("cmc/cmc.data",),
    ),
    NamedInstance(
        "fars",
        "10,093 traffic accident records, 7 attributes, sensitive injury",
        "US Department of Transportation, FARS",
        _file(
            "fars/fars_subset.csv",
            Schema(
                _kinds("iage", "irace,ideathmon,ideathday,isex,ihispanic,istatenum"),
                sensitive=("iinjury",),
                table=TableFormat(separator=";"),
            ),
        ),
        ("fars/fars_subset.csv",),
    ),
    NamedInstance(
        "census-1k",
        "1,000 census records, 8 attributes, all numeric",
        "Liang & Samavi 2020 (IPUMS USA)",
        _extract(*_CENSUS_1K),
        _CENSUS_1K,
    ),
    NamedInstance(
        "census-1k-mixed",
        "the same, age and education numeric, the other 6 attributes categorical",
        "Liang & Samavi 2020 (IPUMS USA)",
        _extract(*_CENSUS_1K_MIXED),
        _CENSUS_1K_MIXED,
    ),
    NamedInstance(
        "census-1k-categories",
        "the same with the 83 birthplaces and 47 scores of the whole CENSUS, not all of them here",
        "Liang & Samavi 2020 (IPUMS USA)",
        lambda: with_categories(load_instance("census-1k-mixed"), {"BPL": 83, "OCCSCORE": 47}),
        _CENSUS_1K_MIXED,
    ),
    NamedInstance(
        "census-10k",
        "10,000 census records, 8 attributes, age and education numeric, the paper's domains",
        "Doka et al. 2015, domains of its Table 2 (IPUMS USA)",
        _file("census_ipums/census_10k_8attr_doka.csv", Schema(_CENSUS_10K, table=_HEADLESS)),
        ("census_ipums/census_10k_8attr_doka.csv",),
    ),
    NamedInstance(
        "census-10k-numeric",
        "the same, all attributes numeric, with the ends that occur",
        "Doka et al. 2015 (IPUMS USA)",
        _file(
            "census_ipums/census_10k_8attr_doka.csv",
            Schema(_kinds(",".join(_CENSUS_10K), ""), table=_HEADLESS),
        ),
        ("census_ipums/census_10k_8attr_doka.csv",),
    ),
    NamedInstance(
        "census-100k",
        "100,000 census records, 4 attributes, all numeric",
        "Liang & Samavi 2020 (IPUMS USA)",
        _extract(*_CENSUS_100K),
        _CENSUS_100K,
    ),
    NamedInstance(
        "tarragona",
        "834 companies, 13 numeric attributes",
        "CASC project, Tarragona",
        lambda: read_numbers("casc/tarragona_834x13.csv"),
        ("casc/tarragona_834x13.csv",),
    ),
    NamedInstance(
        "casc",
        "1,080 tax records, 13 numeric attributes",
        "CASC project, Census",
        lambda: read_numbers("casc/census_casc_1080x13.csv"),
        ("casc/census_casc_1080x13.csv",),
    ),
)

#: All named instances.
INSTANCES = MappingProxyType({instance.name: instance for instance in _INSTANCES})


def load_instance(name: str | Path, schema: Schema | None = None) -> Microdata:
    """Return the instance of a name, a generator call, or a file.

    Parameters
    ----------
    name
        A named instance (see :data:`INSTANCES`), ``census:n,m,seed``, ``library:NAME`` for the
        table of an entry of the library, or the path of a CSV or Parquet file.
    schema
        For a file: its schema; None looks for a TOML file of the same name beside it.

    Raises
    ------
    InputError
        If there is no such instance, its data are not here, or they are not those of the entry.
    """
    name = os.fspath(name)
    if name in INSTANCES:
        if schema is not None:
            raise InputError(f"instance {name} has its own schema", remedy="Leave the schema out")
        return INSTANCES[name].load()
    if name.startswith("census:"):
        return _generated(name)
    if name.startswith(PREFIX):
        entry = find_entry(name)
        return entry.rows_of(load_instance(entry.table))
    file = Path(name)
    if not os.path.isfile(file):
        raise InputError(
            f"there is no instance and no file {name!r}",
            remedy=did_you_mean(
                name, INSTANCES, "Run 'anonymip instances' for the names, or check the path"
            ),
        )
    beside = file.with_suffix(".toml")
    if schema is None:
        if not os.path.isfile(beside):
            needed = argument("schema", ..., option="quasi-identifiers (-q) or --schema")
            raise InputError(f"{file} has no schema", remedy=f"Give {needed}, or write {beside}")
        schema = read_schema(beside)
    return schema.read(file)


def _generated(name: str) -> Microdata:
    try:
        numbers = [int(text) for text in name.removeprefix("census:").split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3):
        raise InputError(
            f"instance {name!r} is not census:n,m,seed", remedy="For example census:1000,8,1"
        )
    n, m, *seed = numbers
    if n > _MOST_GENERATED:
        raise InputError(
            f"n is above {_MOST_GENERATED:,}, the most records that are generated",
            remedy="Ask for fewer",
        )
    return census(n, m, seed[0] if seed else 0)
