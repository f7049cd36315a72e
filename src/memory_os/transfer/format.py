"""The lines of an export: a header, one line a record, and a trailer by which a torn or changed file shows.

```
{"format": "memory-os", "version": 1, "schema": "0008", "tenant": {...}, "exported_at": "...", "counts": {...}}
{"type": "memory", "record": {"id": "...", "label": "Decision", ...}}
{"type": "edge", "record": {...}, "derived": {"<id>": "acme"}}
{"type": "end", "counts": {...}, "sha256": "..."}
```

An entity that nobody has declared has its id from its tenant and its name. In a file it stands under the id that its
name has in no tenant, and `derived` gives the names of those that a line holds.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType

from memory_os.domain.ids import derived_entity_id
from memory_os.errors import StartupError
from memory_os.storage.revision import SCHEMA_REVISION

FORMAT: Final = "memory-os"
VERSION: Final = 1
END: Final = "end"

NOWHERE: Final = UUID(int=0)
"""The tenant that ids of derived entities have in a file: none."""

_DERIVED = re.compile('"([0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"')
"""A whole text of JSON that can be a derived entity's id."""


class FileError(StartupError):
    """A file that can't be imported as it is; the message names the line, and nothing was changed."""

    def __init__(self, number: int, fault: str) -> None:
        super().__init__(f"line {number}: {fault}; nothing was imported")


class FileTenant(Struct, forbid_unknown_fields=True):
    """The tenant that a file was made from, for whoever looks at it; an import asks for its own."""

    name: str
    time_zone: str


class Header(Struct, forbid_unknown_fields=True):
    """The first line."""

    format: str
    version: int
    schema: str
    tenant: FileTenant
    exported_at: datetime
    counts: dict[str, int]
    user: str | UnsetType = UNSET
    """The user whose export it is; such a file is for reading, and is not imported."""


class Line(Struct, forbid_unknown_fields=True):
    """A record's line. The record stays as it was written: Postgres reads numbers more exactly than floats are."""

    type: str
    record: msgspec.Raw
    derived: dict[UUID, str] = {}


class Trailer(Struct, forbid_unknown_fields=True):
    """The last line; `sha256` is that of all bytes before it."""

    type: str
    counts: dict[str, int]
    sha256: str


_encode = msgspec.json.Encoder().encode


def header_of(tenant: FileTenant, exported_at: datetime, counts: dict[str, int], user: str | None = None) -> Header:
    """The header of a file that is made now, by this version."""
    given = UNSET if user is None else user
    return Header(FORMAT, VERSION, SCHEMA_REVISION, tenant, exported_at, counts, given)


class LineWriter:
    """Makes lines, and keeps what the trailer says of them."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._counts: dict[str, int] = {}

    def header(self, header: Header) -> bytes:
        """The first line."""
        self._counts = dict.fromkeys(header.counts, 0)
        return self._take(_encode(header) + b"\n")

    def record(self, kind: str, record: str, names: Mapping[str, str]) -> bytes:
        """A record's line.

        Args:
            kind: Its type.
            record: The record as JSON, as Postgres wrote it.
            names: Canonical names of derived entities by their ids in the tenant.
        """
        self._counts[kind] += 1
        known: dict[str, str] = {}
        if names:
            found = {ident: names[ident] for ident in derived_ids(record) if ident in names}
            moved = {ident: str(derived_entity_id(NOWHERE, name)) for ident, name in found.items()}
            known = {moved[ident]: found[ident] for ident in sorted(found)}
            record = replace_ids(record, moved)
        named = b',"derived":' + _encode(known) if known else b""
        return self._take(b'{"type":"%b","record":%b%b}\n' % (kind.encode(), record.encode(), named))

    def trailer(self) -> bytes:
        """The last line."""
        return _encode(Trailer(END, self._counts, self._hash.hexdigest())) + b"\n"

    def _take(self, line: bytes) -> bytes:
        self._hash.update(line)
        return line


def derived_ids(record: str) -> set[str]:
    """What can be ids of derived entities in a record: values and keys of the form that these have."""
    return set(_DERIVED.findall(record))


def replace_ids(record: str, moved: Mapping[str, str]) -> str:
    """A record with other ids in the place of these, wherever they are a whole text of it."""
    if not moved:
        return record
    return _DERIVED.sub(lambda found: f'"{moved.get(found.group(1), found.group(1))}"', record)


def at_home(line: Line, tenant_id: UUID) -> str:
    """A line's record with the ids that its derived entities have in a tenant.

    Raises:
        ValueError: If an id in the line is not that of its name.
    """
    record = bytes(line.record).decode()
    for ident, name in line.derived.items():
        if ident != derived_entity_id(NOWHERE, name):
            raise ValueError(f"the entity {ident} has its id from another name than {name!r}")
    return replace_ids(record, {str(i): str(derived_entity_id(tenant_id, n)) for i, n in line.derived.items()})


def decode(line: bytes, shape: Any) -> Any:  # noqa: ANN401 - a type, and an instance of it
    """A line as one of the shapes.

    Raises:
        ValueError: If it is none.
    """
    try:
        return msgspec.json.decode(line, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
