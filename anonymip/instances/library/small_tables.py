"""Small tables that a person can check by hand, most of them from the papers."""

from __future__ import annotations

import pandas as pd

from anonymip.instances.attribute import Attribute
from anonymip.instances.hierarchies.hierarchy import Hierarchy
from anonymip.instances.microdata import Microdata


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


def accident_records() -> Microdata:
    """Return the 20 accident records of Liang & Samavi (2020), Table 2, with their domains.

    They are the field's smallest real example: a sample of the Fatality Analysis Reporting System
    of the US Department of Transportation, whose works are in the public domain.
    """
    records = [
        *[(64, 2, 4, 0), (29, 1, 0, 0), (42, 2, 0, 0), (41, 2, 4, 1), (53, 1, 2, 1)],
        *[(59, 1, 4, 0), (49, 1, 4, 0), (59, 1, 2, 0), (80, 1, 4, 0), (50, 1, 4, 0)],
        *[(64, 1, 3, 0), (55, 1, 0, 0), (25, 1, 0, 0), (42, 1, 4, 0), (33, 1, 2, 0)],
        *[(31, 2, 2, 0), (68, 1, 3, 0), (20, 2, 4, 0), (40, 1, 4, 1), (18, 1, 4, 0)],
    ]
    domains = {"AGE": (1, 100), "SEX": (1, 2), "INJ_SEV": (0, 6), "DRINKING": (0, 1)}
    return Microdata(
        pd.DataFrame(records, columns=list(domains)),
        tuple(Attribute(name, integer=True, domain=domain) for name, domain in domains.items()),
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
