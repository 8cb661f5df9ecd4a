"""Tests of the named instances: tables of the papers, and the benchmark data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anonymip import (
    INSTANCES,
    Classes,
    Diversity,
    HierarchyLoss,
    InputError,
    InvalidAssignment,
    Problem,
    Schema,
    Solution,
    load_instance,
)
from anonymip.instances import data_directory
from anonymip.instances.library.fetching import read_domain_file, read_extract
from tests.by_hand import by_classes

#: Records, quasi-identifiers, distinct records. Records and attributes as the sources state them
#: (Adult: 32,561 records, 2,399 of them incomplete), distinct ones of the two CENSUS extracts too.
BENCHMARKS = {
    "adult": (30_162, 8, 18_109),
    "adult-hierarchies": (30_162, 8, 18_109),
    "adult-raw": (32_561 - 2_399, 8, 18_109),
    "nursery": (12_960, 8, 12_960),
    "cmc": (1_473, 9, None),
    "fars": (10_093, 7, None),
    "census-1k": (1_000, 8, None),
    "census-1k-mixed": (1_000, 8, None),
    "census-1k-categories": (1_000, 8, None),
    "census-10k": (10_000, 8, 9_058),
    "census-10k-numeric": (10_000, 8, 9_058),
    "census-100k": (100_000, 4, 1_936),
    "tarragona": (834, 13, None),
    "casc": (1_080, 13, None),
}

#: Instances that need no data folder.
BUILT_IN = (
    *("health-records", "person20", "wong-5", "aggarwal-4", "aggarwal-quality"),
    "clinic-12",
)


def rows(name: str) -> list[tuple[object, ...]]:
    """Return the records of a named instance."""
    return list(load_instance(name).frame.itertuples(index=False, name=None))


def test_health_records_are_those_of_liang_and_samavi_table_1a() -> None:
    """Seven records; the name is dropped, the disease sensitive."""
    data = load_instance("health-records")
    assert rows("health-records") == [
        ("Mary", 37, "F", 22071, "Pneumonia"),
        ("Alice", 35, "F", 22098, "Diabetes"),
        ("Betsy", 36, "F", 23061, "Anemia"),
        ("David", 61, "M", 55107, "Pneumonia"),
        ("Tom", 63, "M", 55099, "Diabetes"),
        ("James", 66, "M", 55324, "Diabetes"),
        ("Eric", 63, "M", 55229, "Diabetes"),
    ]
    assert data.names == ("Age", "Sex", "Zipcode")
    assert [a.kind for a in data.attributes] == ["numeric", "categorical", "numeric"]
    assert (data.sensitive, data.drop, data.undeclared) == (("Disease",), ("Name",), ())


def test_wong_5_is_wong_et_al_table_1() -> None:
    """Five patients; the disease is sensitive, and one of its values is the text None."""
    data = load_instance("wong-5")
    assert rows("wong-5") == [
        (901152, "M", 30, "Flu"),
        (901157, "F", 28, "Cancer"),
        (901578, "M", 15, "Cancer"),
        (902398, "M", 48, "AIDS"),
        (902301, "M", 20, "None"),
    ]
    assert data.names == ("Zip code", "Gender", "Age")
    assert data.sensitive == ("Disease",)


def test_aggarwal_4_is_the_table_of_the_introduction() -> None:
    """Four patients of Aggarwal et al. 2005; the disease is sensitive."""
    data = load_instance("aggarwal-4")
    assert rows("aggarwal-4") == [
        (47, "White", "Male", 21004, "Common Cold"),
        (35, "White", "Female", 21004, "Flu"),
        (27, "Hispanic", "Female", 92010, "Flu"),
        (27, "White", "Female", 92010, "Hypertension"),
    ]
    assert data.names == ("Age", "Race", "Gender", "Zip Code")
    assert data.sensitive == ("Disease",)


def test_aggarwal_quality_has_the_hierarchy_of_figure_1() -> None:
    """Six grades in two groups: level 1 of 2 for all six costs 3, the least for k = 3."""
    data = load_instance("aggarwal-quality")
    (attribute,) = data.attributes
    assert attribute.hierarchy is not None
    assert attribute.hierarchy.height == 2
    groups = {path[0]: path[1] for path in attribute.hierarchy.paths}
    assert [grade for grade in groups if groups[grade] == groups["A"]] == ["A+", "A", "A-"]
    assert [grade for grade in groups if groups[grade] == groups["B"]] == ["B+", "B", "B-"]
    problem = Problem(data, 3, objective=HierarchyLoss())
    by_groups = by_classes(problem, [0, 0, 0, 1, 1, 1])
    assert by_groups.objective == 3.0
    assert set(by_groups.to_frame()["Quality"]) == {"A- to A+", "B- to B+"}
    whole = by_classes(problem, [0] * 6)
    assert (whole.objective, set(whole.to_frame()["Quality"])) == (6.0, {"*"})


def test_clinic_12_has_hierarchies_and_a_diversity_that_costs() -> None:
    """Twelve patients; two hierarchies of three levels; classes of three need not be diverse."""
    data = load_instance("clinic-12")
    assert (data.n, data.m, data.sensitive) == (12, 3, ("Diagnosis",))
    assert [attribute.kind for attribute in data.attributes] == [
        "numeric",
        "hierarchical",
        "hierarchical",
    ]
    assert [a.hierarchy.height for a in data.attributes if a.hierarchy is not None] == [3, 3]
    in_order = Classes(np.arange(12) // 3)
    Solution.of(Problem(data, 3), in_order, method="by hand")
    diverse = Problem(data, 3, diversity=Diversity(distinct=2))
    with pytest.raises(InvalidAssignment, match="without the diversity"):
        Solution.of(diverse, in_order, method="by hand")
    by_classes(diverse, np.arange(12) % 4)


def test_every_instance_is_listed_with_its_source() -> None:
    """Name, description, source and needed files belong to every instance."""
    assert set(INSTANCES) == {*BUILT_IN, *BENCHMARKS}
    for name, instance in INSTANCES.items():
        assert instance.name == name
        assert instance.description
        assert instance.source
        assert bool(instance.files) == (name in BENCHMARKS)


@pytest.mark.shared_data
@pytest.mark.parametrize("name", BENCHMARKS)
def test_benchmark_data_load_as_documented(name: str) -> None:
    """Every loader gives the documented numbers of records, attributes and distinct records."""
    n, m, distinct = BENCHMARKS[name]
    data = load_instance(name)
    assert (data.n, data.m) == (n, m)
    assert data.undeclared == ()
    assert distinct is None or len(data.row_types().counts) == distinct
    assert all(path.is_file() for path in INSTANCES[name].paths())


def test_person20_is_liang_and_samavi_table_2() -> None:
    """Twenty accident records with their domains, here without any data folder."""
    data = load_instance("person20")
    assert data.names == ("AGE", "SEX", "INJ_SEV", "DRINKING")
    assert (data.n, len(data.row_types().counts)) == (20, 20)
    assert data.frame.iloc[0].tolist() == [64, 2, 4, 0]
    assert [a.domain for a in data.attributes] == [(1, 100), (1, 2), (0, 6), (0, 1)]
    assert all(a.integer and a.weight == 1.0 for a in data.attributes)


@pytest.mark.shared_data
def test_person20_is_the_sample_of_the_benchmark_data() -> None:
    """The built-in records and domains are those of the files that are handed round."""
    stem = "census_ipums/person20_4attr"
    data, other = load_instance("person20"), read_extract(f"{stem}.csv", f"{stem}_domain.txt")
    assert data.values.tolist() == other.values.tolist()
    assert [a.domain for a in data.attributes] == [a.domain for a in other.attributes]


@pytest.mark.thorough
@pytest.mark.shared_data
def test_both_versions_of_adult_hold_the_same_records() -> None:
    """Leaving incomplete records out of the raw file gives the cleaned one, row by row."""
    clean, raw = load_instance("adult"), load_instance("adult-raw")
    assert (clean.frame[list(raw.names)] == raw.frame[list(raw.names)]).to_numpy().all()
    assert len(raw.original) == 32_561


@pytest.mark.shared_data
def test_the_mixed_census_extract_has_six_categorical_attributes() -> None:
    """Age and education are numeric, as the domain file says; categories are what is observed."""
    data = load_instance("census-1k-mixed")
    assert [a.name for a in data.attributes if a.is_numeric] == ["AGE", "HIGRADE"]
    assert all(a.domain is None for a in data.attributes if not a.is_numeric)


@pytest.mark.shared_data
def test_the_categories_of_the_whole_census_are_counted() -> None:
    """2, 6, 7, 83, 7 and 47 of them; records and their codes are those of the mixed extract."""
    data, observed = load_instance("census-1k-categories"), load_instance("census-1k-mixed")
    sizes = [
        len(levels) if attribute.domain is None else len(attribute.domain)
        for attribute, levels in zip(data.attributes, data.levels, strict=True)
        if not attribute.is_numeric
    ]
    assert sizes == [2, 6, 7, 83, 7, 47]
    assert data.frame.equals(observed.frame)
    assert data.codes.tolist() == observed.codes.tolist()


@pytest.mark.shared_data
def test_census_10k_has_the_domains_of_doka_et_al_table_2() -> None:
    """79, 2, 17, 6, 9, 10, 83, 51 values, though 57 countries and 50 occupations occur."""
    data = load_instance("census-10k")
    sizes = []
    for attribute in data.attributes:
        assert attribute.domain is not None
        if attribute.is_numeric:
            low, high = attribute.domain
            sizes.append(int(high) - int(low) + 1)
        else:
            sizes.append(len(attribute.domain))
    assert sizes == [79, 2, 17, 6, 9, 10, 83, 51]
    assert [len(level) for level in data.levels][-2:] == [57, 50]
    assert "Table 2" in INSTANCES["census-10k"].source


@pytest.mark.parametrize("name", BENCHMARKS)
def test_absent_data_are_named_with_the_remedy(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the data folder the message names the file and the variable to set."""
    monkeypatch.delenv("ANONYMIP_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert data_directory() is None
    with pytest.raises(InputError, match="benchmark data are not here") as caught:
        load_instance(name)
    assert any(file in caught.value.message for file in INSTANCES[name].files)
    assert "ANONYMIP_DATA" in (caught.value.remedy or "")
    with pytest.raises(InputError, match="benchmark data are not here"):
        INSTANCES[name].paths()


def test_a_folder_without_the_files_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A wrong ANONYMIP_DATA is answered with the folder and the file that is not in it."""
    monkeypatch.setenv("ANONYMIP_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"adult_arx_30162\.csv is not in") as caught:
        load_instance("adult")
    assert str(tmp_path) in caught.value.message


def test_the_neighbouring_folder_is_found_by_its_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The default folder counts only if the data lie in it, not if it merely exists."""
    monkeypatch.delenv("ANONYMIP_DATA", raising=False)
    work, extract = tmp_path / "work", tmp_path / "shared" / "data" / "census_ipums"
    work.mkdir()
    extract.mkdir(parents=True)
    monkeypatch.chdir(work)
    assert data_directory() is None
    (extract / "person20_4attr.csv").write_text("AGE\n1\n", encoding="utf-8")
    assert data_directory() == Path("..") / "shared" / "data"


def test_domain_files_are_read(tmp_path: Path) -> None:
    """Names, kinds, ends and weights; the ends of categories are those of codes, not a domain."""
    file = tmp_path / "domain.txt"
    file.write_bytes(b"AGE,PAY,SEX\r\nInteger,Numerical,Categorical\r\n1,0,1\r\n100,9.5,2\r\n2,1,1")
    assert read_domain_file(file) == {
        "AGE": {"weight": 2.0, "kind": "numeric", "integer": True, "domain": (1.0, 100.0)},
        "PAY": {"weight": 1.0, "kind": "numeric", "integer": False, "domain": (0.0, 9.5)},
        "SEX": {"weight": 1.0, "kind": "categorical"},
    }


def test_generated_instances_are_named_by_size_and_seed() -> None:
    """census:n,m,seed is generated; without a seed it is 0."""
    data = load_instance("census:50,4,3")
    assert (data.n, data.m) == (50, 4)
    assert load_instance("census:50,4").frame.equals(load_instance("census:50,4,0").frame)


@pytest.mark.parametrize("name", ["census:", "census:5", "census:a,b,c", "census:1,2,3,4"])
def test_malformed_generator_calls_are_refused(name: str) -> None:
    """The message shows how to write one."""
    with pytest.raises(InputError, match="is not census:n,m,seed") as caught:
        load_instance(name)
    assert "census:1000,8,1" in (caught.value.remedy or "")


def test_unknown_instances_are_refused(tmp_path: Path) -> None:
    """What is neither a name nor a file is answered with where the names are listed."""
    with pytest.raises(InputError, match="no instance and no file 'adlut'") as caught:
        load_instance("adlut")
    assert "anonymip instances" in (caught.value.remedy or "")
    with pytest.raises(InputError, match="is a folder, not a file"):
        load_instance(str(tmp_path))


def test_named_instances_have_their_own_schema() -> None:
    """A schema for a named instance is refused instead of ignored."""
    with pytest.raises(InputError, match="has its own schema"):
        load_instance("health-records", Schema())


def test_files_are_read_with_a_schema_given_or_beside_them(tmp_path: Path) -> None:
    """A TOML file of the same name is found; a schema that is given goes before it."""
    table = tmp_path / "people.csv"
    table.write_text("age,sex\n34,F\n61,M\n", encoding="utf-8")
    with pytest.raises(InputError, match="has no schema") as caught:
        load_instance(str(table))
    assert "people.toml" in (caught.value.remedy or "")
    table.with_suffix(".toml").write_text("[attributes.sex]\n[table]\ndrop=['age']", "utf-8")
    assert load_instance(str(table)).names == ("sex",)
    assert load_instance(str(table), Schema({"age": {}}, drop=("sex",))).names == ("age",)
