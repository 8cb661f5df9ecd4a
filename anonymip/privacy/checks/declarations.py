"""What a manifest declares of the columns, held against the schema of the original."""

from __future__ import annotations

from anonymip.privacy.reading.original import Original, Schema
from anonymip.privacy.reading.release_manifest import Manifest


def schema_finding(
    manifest: Manifest, schema: Schema | None, records: Original
) -> tuple[str, list[str]]:
    """Return what is checked of the columns' declarations, and where they are not the schema's."""
    if schema is None:
        return "Not checked: the roles of the columns, since no schema was given.", []
    problems = []
    for column in manifest.columns:
        name, kind = column.name, schema.kinds.get(column.name)
        role = schema.roles.get(name)
        if role is not None and role != column.role:
            problems.append(
                f"Column {name!r} is {role} in the schema but {column.role} in the manifest."
            )
        elif role == "quasi-identifier" and kind not in (None, column.kind):
            problems.append(f"Column {name!r} is {kind} in the schema, not in the manifest.")
        elif name in records.other_domains:
            problems.append(
                f"Column {name!r} has a domain in the schema that is not the one of the manifest: "
                "give the schema that the release was made with, or make the release again."
            )
    if schema.unit not in (None, manifest.unit):
        counted = "rows" if manifest.unit is None else f"units {manifest.unit!r}"
        problems.append(
            f"By the schema k counts units {schema.unit!r}, by the manifest {counted}: give the "
            "schema that the release was made with, or make the release again."
        )
    told = (
        "Roles, kinds and domains of the columns and the unit are what the schema declares of them."
    )
    return told, problems
