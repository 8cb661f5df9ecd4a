"""Instances by name: small tables of the papers, generated ones, and the benchmark data."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pandas as pd

from anonymip.errors import InputError
from anonymip.instances.attribute import Attribute
from anonymip.instances.generators import census
from anonymip.instances.hierarchy import Hierarchy, read_hierarchy
from anonymip.instances.microdata import Microdata, TableFormat
from anonymip.instances.readers import read_table
from anonymip.instances.schema import Schema, read_schema


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
        return tuple(_data_file(name) for name in self.files)


def health_records() -> Microdata:
    """Return the 7 health records of Liang & Samavi (2020), Table 1a."""
    frame = pd.DataFrame(
        {
            "Name": ["Mary", "Alice", "Betsy", "David", "Tom", "James", "Eric"],
            "Age": [37, 35, 36, 61, 63, 66, 63],
            "Sex": ["F", "F", "F", "M", "M", "M", "M"],
            "Zipcode": [22071, 22098, 23061, 55107, 55099, 55324, 55229],
            "Disease": [
                "Pneumonia",
                "Diabetes",
                "Anemia",
                "Pneumonia",
                "Diabetes",
                "Diabetes",
                "Diabetes",
            ],
        }
    )
    return Microdata(
        frame,
        (
            Attribute("Age", integer=True),
            Attribute("Sex", "categorical"),
            Attribute("Zipcode", integer=True),
        ),
        sensitive=("Disease",),
        drop=("Name",),
    )


def wong_table() -> Microdata:
    """Return the 5 records of Wong, Mamoulis & Cheung (2010), Table 1."""
    frame = pd.DataFrame(
        {
            "Zip code": [901152, 901157, 901578, 902398, 902301],
            "Gender": ["M", "F", "M", "M", "M"],
            "Age": [30, 28, 15, 48, 20],
            "Disease": ["Flu", "Cancer", "Cancer", "AIDS", "None"],
        }
    )
    return Microdata(
        frame,
        (
            Attribute("Zip code", integer=True),
            Attribute("Gender", "categorical"),
            Attribute("Age", integer=True),
        ),
        sensitive=("Disease",),
    )


def aggarwal_table() -> Microdata:
    """Return the 4 records of the introduction of Aggarwal et al. (2005)."""
    frame = pd.DataFrame(
        {
            "Age": [47, 35, 27, 27],
            "Race": ["White", "White", "Hispanic", "White"],
            "Gender": ["Male", "Female", "Female", "Female"],
            "Zip Code": [21004, 21004, 92010, 92010],
            "Disease": ["Common Cold", "Flu", "Flu", "Hypertension"],
        }
    )
    return Microdata(
        frame,
        (
            Attribute("Age", integer=True),
            Attribute("Race", "categorical"),
            Attribute("Gender", "categorical"),
            Attribute("Zip Code", integer=True),
        ),
        sensitive=("Disease",),
    )


def quality_grades() -> Microdata:
    """Return one record for each value of the attribute Quality of Aggarwal et al. (2005).

    Its hierarchy is that of their Figure 1, whose nodes bear no names there.
    """
    above = {"A": "A- to A+", "B": "B- to B+"}
    grades = ("A+", "A", "A-", "B+", "B", "B-")
    hierarchy = Hierarchy([(grade, above[grade[0]], "*") for grade in grades])
    return Microdata(
        pd.DataFrame({"Quality": list(grades)}),
        (Attribute("Quality", "hierarchical", hierarchy=hierarchy),),
    )


def clinic_table() -> Microdata:
    """Return 12 invented patients: two hierarchies, whole numbers, a sensitive diagnosis.

    The root of the towns is a star, as usual, and the diagnoses lie so that the cheapest classes
    of three need not be diverse.
    """
    towns = Hierarchy(
        [
            ("Arden", "Northshire", "North", "*"),
            ("Brock", "Northshire", "North", "*"),
            ("Corby", "Lakeside", "North", "*"),
            ("Dunmere", "Lakeside", "North", "*"),
            ("Elmfield", "Southvale", "South", "*"),
            ("Farrow", "Southvale", "South", "*"),
            ("Gorse", "Harbour", "South", "*"),
        ]
    )
    jobs = Hierarchy(
        [
            ("nurse", "health", "services", "any job"),
            ("dentist", "health", "services", "any job"),
            ("teacher", "schools", "services", "any job"),
            ("welder", "metal", "crafts", "any job"),
            ("fitter", "metal", "crafts", "any job"),
            ("farmer", "farmer", "crafts", "any job"),
        ]
    )
    records = [
        (29, "Arden", "nurse", "asthma"),
        (31, "Arden", "dentist", "asthma"),
        (34, "Brock", "nurse", "asthma"),
        (38, "Corby", "teacher", "flu"),
        (41, "Dunmere", "teacher", "gout"),
        (44, "Corby", "nurse", "flu"),
        (52, "Elmfield", "welder", "gout"),
        (55, "Farrow", "fitter", "gout"),
        (57, "Elmfield", "farmer", "asthma"),
        (63, "Gorse", "welder", "flu"),
        (66, "Gorse", "farmer", "flu"),
        (71, "Farrow", "farmer", "gout"),
    ]
    return Microdata(
        pd.DataFrame(records, columns=["Age", "Town", "Job", "Diagnosis"]),
        (
            Attribute("Age", integer=True, domain=(18, 99)),
            Attribute("Town", "hierarchical", hierarchy=towns),
            Attribute("Job", "hierarchical", hierarchy=jobs),
        ),
        sensitive=("Diagnosis",),
    )


def data_directory() -> Path | None:
    """Return the folder of the benchmark data, or None.

    It is the one that ``ANONYMIP_DATA`` names, else ``../shared/data`` beside the working
    directory if the data lie there.
    """
    named = os.environ.get("ANONYMIP_DATA")
    if named:
        return Path(named)
    nearby = Path("..") / "shared" / "data"
    return nearby if (nearby / "census_ipums" / "person20_4attr.csv").is_file() else None


def _data_file(name: str) -> Path:
    folder = data_directory()
    if folder is None:
        raise InputError(
            f"the benchmark data are not here ({name} is needed)",
            remedy="Set ANONYMIP_DATA to the folder that holds them; they are not distributed "
            "with the package",
        )
    if not (folder / name).is_file():
        raise InputError(
            f"the benchmark file {name} is not in {folder}",
            remedy="Set ANONYMIP_DATA to the folder that holds it",
        )
    return folder / name


def read_domain_file(path: Path) -> dict[str, dict[str, object]]:
    """Read the domain file of a CENSUS or FARS extract.

    Four lines: names; types (Integer, Numerical, Categorical); lower and upper ends; weights.
    The ends of a categorical attribute are those of its codes, not its values: its domain is
    what is observed.
    """
    names, types, lows, highs, weights = (
        line.split(",") for line in path.read_text(encoding="utf-8").split()
    )
    attributes: dict[str, dict[str, object]] = {}
    for name, kind, low, high, weight in zip(names, types, lows, highs, weights, strict=True):
        attributes[name] = {"weight": float(weight)}
        if kind == "Categorical":
            attributes[name] |= {"kind": "categorical"}
        else:
            attributes[name] |= {
                "kind": "numeric",
                "integer": kind == "Integer",
                "domain": (float(low), float(high)),
            }
    return attributes


def _extract(table: str, domains: str) -> Callable[[], Microdata]:
    def load() -> Microdata:
        attributes = read_domain_file(_data_file(domains))
        return Schema(attributes).read(_data_file(table))

    return load


def _file(name: str, schema: Schema) -> Callable[[], Microdata]:
    return lambda: schema.read(_data_file(name))


_ADULT = "sex,race,marital-status,education,native-country,workclass,occupation"
_ADULT_HIERARCHIES = {
    name: f"adult/hierarchies/adult_hierarchy_{name}.csv" for name in ["age", *_ADULT.split(",")]
}


def _adult_with_hierarchies() -> Microdata:
    """Return the complete records of Adult, all attributes with the hierarchies of the data."""
    table = _data_file("adult/adult_arx_30162.csv")
    attributes = {
        name: {"hierarchy": read_hierarchy(_data_file(file))}
        for name, file in _ADULT_HIERARCHIES.items()
    }
    schema = Schema(attributes, sensitive=("salary-class",), table=TableFormat(separator=";"))
    return schema.read(table)


# The columns of files without header.
_ADULT_RAW = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
]
_CENSUS_10K = ["age", "gender", "education", "marital", "race", "work class"]
_CENSUS_10K += ["country", "occupation"]


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
        "person20",
        "20 traffic accident records, 4 attributes",
        "Liang & Samavi 2020, Table 2 (FARS)",
        _extract("census_ipums/person20_4attr.csv", "census_ipums/person20_4attr_domain.txt"),
        ("census_ipums/person20_4attr.csv", "census_ipums/person20_4attr_domain.txt"),
    ),
    NamedInstance(
        "adult",
        "30,162 complete census records, 8 attributes, sensitive salary class",
        "UCI Adult, incomplete records removed",
        _file(
            "adult/adult_arx_30162.csv",
            Schema(
                _kinds("age", _ADULT),
                sensitive=("salary-class",),
                table=TableFormat(separator=";"),
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
                    "age",
                    "workclass,education,marital-status,occupation,race,sex,native-country",
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
        _extract(
            "census_ipums/census_1k_8attr.txt",
            "census_ipums/census_8attr_domain_numerical.txt",
        ),
        (
            "census_ipums/census_1k_8attr.txt",
            "census_ipums/census_8attr_domain_numerical.txt",
        ),
    ),
    NamedInstance(
        "census-1k-mixed",
        "the same, age and education numeric, the other 6 attributes categorical",
        "Liang & Samavi 2020 (IPUMS USA)",
        _extract("census_ipums/census_1k_8attr.txt", "census_ipums/census_8attr_domain_mixed.txt"),
        ("census_ipums/census_1k_8attr.txt", "census_ipums/census_8attr_domain_mixed.txt"),
    ),
    NamedInstance(
        "census-10k",
        "10,000 census records, 8 attributes, age and education numeric",
        "Doka et al. 2015 (IPUMS USA)",
        _file(
            "census_ipums/census_10k_8attr_doka.csv",
            Schema(
                {
                    name: {"kind": "numeric", "integer": True}
                    if name in ("age", "education")
                    else {"kind": "categorical"}
                    for name in _CENSUS_10K
                },
                table=TableFormat(separator=", ", header=False, columns=tuple(_CENSUS_10K)),
            ),
        ),
        ("census_ipums/census_10k_8attr_doka.csv",),
    ),
    NamedInstance(
        "census-100k",
        "100,000 census records, 4 attributes, all numeric",
        "Liang & Samavi 2020 (IPUMS USA)",
        _extract("census_ipums/census_100k_4attr.txt", "census_ipums/census_4attr_domain.txt"),
        ("census_ipums/census_100k_4attr.txt", "census_ipums/census_4attr_domain.txt"),
    ),
    NamedInstance(
        "tarragona",
        "834 companies, 13 numeric attributes",
        "CASC project, Tarragona",
        lambda: _all_numeric("casc/tarragona_834x13.csv"),
        ("casc/tarragona_834x13.csv",),
    ),
    NamedInstance(
        "casc",
        "1,080 tax records, 13 numeric attributes",
        "CASC project, Census",
        lambda: _all_numeric("casc/census_casc_1080x13.csv"),
        ("casc/census_casc_1080x13.csv",),
    ),
)

#: All named instances.
INSTANCES = MappingProxyType({instance.name: instance for instance in _INSTANCES})


def _all_numeric(name: str) -> Microdata:
    frame = read_table(_data_file(name))
    return Schema({str(column): {"kind": "numeric"} for column in frame.columns}).apply(frame)


def load_instance(name: str, schema: Schema | None = None) -> Microdata:
    """Return the instance of a name, a generator call, or a file.

    Parameters
    ----------
    name
        A named instance (see :data:`INSTANCES`), ``census:n,m,seed``, or the path of a CSV or
        Parquet file.
    schema
        For a file: its schema; None looks for a TOML file of the same name beside it.

    Raises
    ------
    InputError
        If there is no such instance, or its data are not here.
    """
    if name in INSTANCES:
        if schema is not None:
            raise InputError(f"instance {name} has its own schema", remedy="Leave the schema out")
        return INSTANCES[name].load()
    if name.startswith("census:"):
        return _generated(name)
    file = Path(name)
    if not file.is_file():
        raise InputError(
            f"there is no instance and no file {name!r}",
            remedy="Run 'anonymip instances' for the names, or check the path",
        )
    beside = file.with_suffix(".toml")
    if schema is None:
        if not beside.is_file():
            raise InputError(
                f"{file} has no schema",
                remedy=f"Name quasi-identifiers (-q), give --schema, or write {beside}",
            )
        schema = read_schema(beside)
    return schema.read(file)


def _generated(name: str) -> Microdata:
    try:
        numbers = [int(text) for text in name.removeprefix("census:").split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3):
        raise InputError(
            f"instance {name!r} is not census:n,m,seed",
            remedy="For example census:1000,8,1",
        )
    n, m, *seed = numbers
    return census(n, m, seed[0] if seed else 0)
