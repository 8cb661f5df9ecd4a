"""The work of a browser tab: table, schema, question and releases, in a private folder."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import tomllib
import zipfile
import zlib
from dataclasses import asdict, dataclass, field
from functools import partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

from anonymip.app import work
from anonymip.app.guard import LARGEST
from anonymip.app.question import Asked
from anonymip.app.texts import say
from anonymip.errors import InputError

#: Names of files of a session: one word, not hidden, of no folder.
_NAME = re.compile(r"[^\W_][\w ()+,=@-]*(\.[\w-]+)+")
TABLES = (".csv", ".tsv", ".txt", ".data", ".xlsx", ".parquet", ".pq")
_FORMAT = "anonymip-project/1"
_MOST_FILES = 500
#: What reading a project may raise, whose file may be anybody's.
_UNREADABLE = (
    *(AttributeError, EOFError, KeyError, OSError, RuntimeError, TypeError, ValueError),
    *(zipfile.BadZipFile, zlib.error),
)
#: Roles that one column at most has, and those that a schema lists columns of.
_SINGLE, _LISTED = ("unit", "weights"), ("sensitive", "keep", "drop")
#: What a schema says of a column that holds for one kind.
_OF_KIND = ("domain", "precision", "at_most", "at_least", "publish", "integer", "format")


@dataclass
class Session:
    """The state of one tab; it survives a reload of its page.

    `schema`: what TOML makes of a schema file. `curve`: loss and bound by k. `releases`: what
    :func:`anonymip.app.work.make_release` tells, by name. `version`: counts changes, for pages.
    """

    folder: Path
    table: str | None = None
    looked: dict[str, Any] = field(default_factory=dict)
    schema: dict[str, Any] = field(default_factory=dict)
    asked: Asked = field(default_factory=Asked)
    curve: dict[int, dict[str, Any]] = field(default_factory=dict)
    releases: dict[str, dict[str, Any]] = field(default_factory=dict)
    chosen: tuple[str, str] = ("", "")
    job: work.Job | None = None
    step: str = "table"
    version: int = 0

    @property
    def busy(self) -> bool:
        """Whether work goes on."""
        return self.job is not None and self.job.running

    def begin(self, job: work.Job) -> None:
        """Start a job, unless one is running."""
        self.refuse_busy()
        # It is known before it begins: what it hands on asks whether it was told to stop.
        self.job = job
        job.start()

    def refuse_busy(self) -> None:
        """Refuse what cannot be done while work goes on."""
        if self.busy:
            raise InputError(say("job.busy"))

    # The table and its columns.

    def _fresh(self) -> Session:
        """Return a session that may take the place of this one, in a folder beside it."""
        folder = self.folder.with_name(secrets.token_hex(8))
        folder.mkdir(mode=0o700)
        return Session(folder)

    def _replaced(self, fresh: Session) -> None:
        """Go on with what a fresh session has: nothing of what was before is left."""
        shutil.rmtree(self.folder)
        for one in ("folder", "table", "asked", "curve", "releases", "chosen"):
            setattr(self, one, getattr(fresh, one))

    def _dropped(self, fresh: Session) -> None:
        """Remove a fresh session that did not take the place of this one."""
        if self.folder != fresh.folder:
            shutil.rmtree(fresh.folder)

    def take_table(self, name: str, incoming: Path | None = None) -> None:
        """Look at a table, which takes the place of all that there is once it could be read.

        `incoming`: the file that was uploaded under the name; None for a built-in table.
        """
        self.refuse_busy()
        if incoming is not None:
            self.path_of(name)
        fresh = self._fresh()
        if incoming is None:
            task = partial(work.bring, fresh.folder, name)
        else:
            incoming.replace(fresh.folder / name)
            task = partial(work.look_at, fresh.folder, name, None)

        def looked(_: object, found: dict[str, Any]) -> None:
            fresh.table = found.pop("table", name)
            fresh.asked.k = min(fresh.asked.k, max(2, found["rows"] // 2))
            self._replaced(fresh)
            self._take_columns(found)

        ended = partial(self._dropped, fresh)
        self.begin(work.Job(say("job.look", name=name), {name: task}, looked, ended))

    def take_schema(self, name: str) -> None:
        """Take the roles of the columns from a schema of the folder."""
        if self.table is None:
            raise InputError(say("table.first"))

        def looked(_: object, found: dict[str, Any]) -> None:
            self._take_columns(found)
            self._changed()

        task = partial(work.look_at, self.folder, self.table, name)
        self.begin(work.Job(say("job.look", name=name), {name: task}, looked))

    def _take_columns(self, found: dict[str, Any]) -> None:
        self.schema = {"table": {}, "attributes": {}, **found.pop("schema")}
        self.looked = found
        self.version += 1

    def role(self, column: str) -> str:
        """Return the role of a column by the schema."""
        if column in self.schema["attributes"]:
            return "quasi-identifier"
        table = self.schema["table"]
        single = [one for one in _SINGLE if table.get(one) == column]
        listed = [one for one in _LISTED if column in table.get(one, [])]
        return (*single, *listed, "drop")[0]

    def set_role(self, column: str, role: str) -> None:
        """Give a column a role, and take it from the one that it had."""
        table, attributes = self.schema["table"], self.schema["attributes"]
        for one in _LISTED:
            table[one] = [name for name in table.get(one, []) if name != column]
        for one in _SINGLE:
            if table.get(one) == column:
                del table[one]
        known = attributes.pop(column, {})
        if role == "quasi-identifier":
            attributes[column] = known or self._suggested(column)
            order = [one["name"] for one in self.looked["columns"]]
            self.schema["attributes"] = {one: attributes[one] for one in order if one in attributes}
        elif role in _SINGLE:
            table[role] = column
        else:
            table[role] = [*table[role], column]
        self._changed()

    def _changed(self) -> None:
        """Forget what was found of other columns, and take from the question what asks for them."""
        self.curve = {}
        asked, known = self.asked, self.schema["attributes"]
        asked.caps = {one: cap for one, cap in asked.caps.items() if one in known}
        if not self.schema["table"].get("sensitive"):
            asked.l_diversity = asked.distinct_diversity = asked.t_closeness = None

    def _suggested(self, column: str) -> dict[str, Any]:
        (looked,) = (one for one in self.looked["columns"] if one["name"] == column)
        declared = {**looked["declared"]}
        if looked["missing"]:
            declared["missing"] = "category" if looked["kind"] == "categorical" else "own"
        return declared

    def declare(self, column: str, key: str, value: Any) -> None:
        """Set or clear what the schema says of a quasi-identifier."""
        known = self.schema["attributes"][column]
        if key in ("kind", "hierarchy"):
            # Another kind has another form and domain.
            for other in (*_OF_KIND, "kind", "hierarchy"):
                known.pop(other, None)
        self.amend(known, key, value)
        if key == "hierarchy" and key not in known:
            known.update(self._suggested(column))

    def amend(self, part: dict[str, Any], key: str, value: Any) -> None:
        """Set or clear an entry of a part of the schema."""
        part.pop(key, None)
        if value not in (None, "", []):
            part[key] = value
        self.curve = {}

    def write_hierarchy(self, column: str) -> None:
        """Write the hierarchy that a rule of codes makes of a column to a file, which it names."""
        rule = self.schema["attributes"][column]
        name = f"hierarchy-{len(self.releases)}-{column}.csv"
        path = self.path_of(re.sub(r"[^\w.-]", "-", name))
        task = partial(
            work.write_hierarchy, self.folder, str(self.table), self.schema_text(), column, path
        )

        def written(_: object, found: str) -> None:
            rule["hierarchy"] = found
            self.version += 1

        self.begin(work.Job(say("job.look", name=column), {column: task}, written))

    def schema_text(self) -> str:
        """Return the schema as the command line reads it."""
        from anonymip.instances.schema import schema_text

        table = {key: one for key, one in self.schema["table"].items() if one != []}
        return schema_text({**self.schema, "table": table})

    def take_beside(self, name: str, incoming: Path) -> str | None:
        """Take a schema, or keep a hierarchy that one names, which is said."""
        self.refuse_busy()
        path = self.path_of(name)
        # What a release was made with stays what it was.
        if name in self.protected() or (self.releases and path.is_file() and path.suffix == ".csv"):
            raise InputError(say("table.taken"))
        incoming.replace(path)
        if path.suffix.lower() == ".toml":
            self.take_schema(name)
            return None
        self.version += 1
        return say("table.stored", name=name)

    # Releases.

    def next_name(self) -> str:
        """Return the name of the release that comes next."""
        number = len(self.releases) + 1
        # A schema alone is that of a release which was not made.
        taken = {
            one.name.partition(".")[0] for one in self.folder.iterdir() if one.suffix != ".toml"
        }
        while f"release-{number}" in taken:
            number += 1
        return f"release-{number}"

    def make_curve(self) -> None:
        """Find the loss at several k."""
        self.refuse_busy()
        # Points of a question that is changed meanwhile go into a curve that nobody looks at.
        curve: dict[int, dict[str, Any]] = {}
        self.curve, asked = curve, Asked(**asdict(self.asked))
        schema = self._write_schema("schema.toml")
        tasks = {
            k: partial(work.weigh, self.folder, str(self.table), schema, asked, k)
            for k in (2, 3, 5, 10, 15, 20, 30, 50)
            if k <= max(2, self.looked["rows"] // 4)
        }

        def weighed(k: int, found: dict[str, Any]) -> None:
            # What a stop cut short says little of its k.
            if not (curve and self.job is not None and self.job.stopping):
                curve[k] = found

        self.begin(work.Job(say("job.curve"), tasks, weighed, keeps=True))

    def make_release(self) -> None:
        """Make a release of what is asked now."""
        self.refuse_busy()
        name, asked = self.next_name(), Asked(**asdict(self.asked))
        schema = self._write_schema(f"{name}.toml")
        task = partial(work.make_release, self.folder, str(self.table), schema, asked, name)

        def released(_: object, found: dict[str, Any]) -> None:
            self.releases[name] = found
            self.chosen = (name, self.chosen[0])
            self.version += 1

        what = say("job.release", k=asked.k)
        self.begin(work.Job(what, {name: task}, released, keeps=True))

    def _write_schema(self, name: str) -> str:
        (self.folder / name).write_bytes(self.schema_text().encode())
        return name

    def files_of(self, name: str) -> list[str]:
        """Return the files that belong to a release, itself first."""
        ending = self.releases[name]["asked"]["ending"]
        release = f"{name}{ending}"
        return [release, f"{release}.manifest.json", f"{name}.html", f"{name}.toml"]

    def hierarchies_of(self, name: str) -> list[str]:
        """Return the files that the schema of a release names."""
        schema = tomllib.loads((self.folder / self.files_of(name)[3]).read_text("utf-8"))
        given = [one.get("hierarchy") for one in schema["attributes"].values()]
        named = [one.get("above") if isinstance(one, dict) else one for one in given]
        return sorted({one for one in named if one is not None})

    def points(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the curve by k; what bounds one k bounds all larger ones."""
        points = [(k, {**one}) for k, one in sorted(self.curve.items())]
        # A release of a larger k is one of this k too; of freeform each row has exactly k records.
        for (_, before), (_, one) in pairwise(points if self.asked.recoding != "freeform" else []):
            known = [bound for bound in (before["bound"], one["bound"]) if bound is not None]
            one["bound"] = max(known, default=None)
        return points

    def protected(self) -> set[str]:
        """Return the files that no other may take the place of."""
        return {str(self.table), *(file for name in self.releases for file in self.files_of(name))}

    # Files.

    def path_of(self, name: str) -> Path:
        """Return where a file lies in the folder. Raises InputError if the name is none of one."""
        if not _NAME.fullmatch(name) or len(name.encode()) > 200:
            raise InputError(say("table.name"))
        return self.folder / name

    def project(self) -> bytes:
        """Return all of it as one file, which :meth:`open_project` opens."""
        self._write_schema("schema.toml")
        told = {
            "format": _FORMAT,
            "table": self.table,
            "looked": self.looked,
            "asked": asdict(self.asked),
            "curve": self.curve,
            "releases": self.releases,
        }
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("project.json", json.dumps(told, ensure_ascii=False, indent=1))
            for path in sorted(self.folder.iterdir()):
                archive.write(path, path.name)
        return buffer.getvalue()

    def open_project(self, path: Path) -> None:
        """Have a project take the place of what there is, as soon as its table could be read.

        Releases are verified again, whatever the file says. Raises InputError if it is no project;
        nothing is changed then.
        """
        self.refuse_busy()
        opened = self._fresh()
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
                if len(members) > _MOST_FILES or sum(one.file_size for one in members) > LARGEST:
                    raise InputError(say("project.large"))
                if not all(_NAME.fullmatch(one.filename) for one in members):
                    raise InputError(say("project.none"))
                told = json.loads(archive.read("project.json"))
                if told["format"] != _FORMAT:
                    raise InputError(say("project.none"))
                archive.extractall(opened.folder)
            (opened.folder / "project.json").unlink()
            opened._fill(told)
        except _UNREADABLE as error:
            shutil.rmtree(opened.folder)
            if isinstance(error, InputError):
                raise
            raise InputError(say("project.none")) from error
        folder, table = opened.folder, str(opened.table)
        tasks: dict[Any, work.Task] = {"": partial(work.look_at, folder, table, "schema.toml")}
        for name in opened.releases:
            files = opened.files_of(name)
            tasks[name] = partial(work.judge, folder, table, files[-1], files[0])

        def opened_again(name: str, found: dict[str, Any]) -> None:
            if name:
                self.releases[name]["verified"] = found
                self.version += 1
                return
            self._replaced(opened)
            self._take_columns(found)

        ended = partial(self._dropped, opened)
        self.begin(work.Job(say("job.open"), tasks, opened_again, ended))

    def _fill(self, told: dict[str, Any]) -> None:
        """Take what a project's file says, as far as it has the form of such a file."""
        self.table = str(told["table"])
        self.asked = Asked.of(told["asked"])
        self.curve = {
            int(k): {
                "loss": float(one["loss"]),
                "bound": None if one["bound"] is None else float(one["bound"]),
                "optimal": one["optimal"] is True,
                "suppressed": int(one["suppressed"]),
            }
            for k, one in told["curve"].items()
        }
        for name, one in told["releases"].items():
            asked = asdict(Asked.of(one["asked"]))
            self.releases[str(name)] = {
                "sentence": str(one["sentence"]),
                "gap": str(one["gap"]),
                "found": list(map(str, one["found"])),
                "attention": one["attention"] and str(one["attention"]),
                "cautions": list(map(str, one["cautions"])),
                "few": [(str(a), list(map(str, b)), list(map(str, c))) for a, b, c in one["few"]],
                "figures": [(str(a), str(b)) for a, b in one["figures"]],
                "verified": None,
                "asked": asked,
            }
            if not all((self.folder / file).is_file() for file in self.files_of(name)):
                raise ValueError(name)
        if not (self.path_of(self.table).is_file() and (self.folder / "schema.toml").is_file()):
            raise ValueError(self.table)
        names = [*self.releases]
        self.chosen = (names[-1] if names else "", "")


class Desk:
    """The sessions of all tabs, by the name that their addresses hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sessions: dict[str, Session] = {}

    def new(self) -> str:
        """Return the name of a new session."""
        name = secrets.token_urlsafe(12)
        folder = self.folder / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        self.sessions[name] = Session(folder)
        return name
