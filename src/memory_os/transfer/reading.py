"""Reading a file of an export line by line: what it says is checked before anything is made of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final
from uuid import UUID

import msgspec

from memory_os.domain.names import canonical_name
from memory_os.domain.search_text import search_text
from memory_os.storage.revision import SCHEMA_REVISION
from memory_os.transfer.format import END, FORMAT, VERSION, FileError, Header, Line, Trailer, at_home, decode
from memory_os.transfer.kinds import KINDS, Kind

LONGEST_LINE: Final = 64 * 1024 * 1024
"""Bytes; no record that the service takes makes a line nearly as long."""


class _Type(msgspec.Struct):
    type: str


class _Named(msgspec.Struct):
    id: UUID
    declared: bool
    name: str


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A record of a file, with the ids that it has in the tenant.

    Attributes:
        number: Its line.
        kind: Its type.
        id: Its id.
        columns: The columns that it names, in their order.
        record: All of it as JSON.
        search_text: What its search vector is made of; None for kinds without one.
    """

    number: int
    kind: Kind
    id: UUID
    columns: tuple[str, ...]
    record: str
    search_text: str | None


class FileReader:
    """The records of one file for one tenant.

    Args:
        stream: The file; read once from where it stands.
        tenant_id: Whose ids derived entities get.

    Raises:
        FileError: If its first line is no header of a version that this one reads.
    """

    def __init__(self, stream: BinaryIO, tenant_id: UUID) -> None:
        self._stream = stream
        self._tenant_id = tenant_id
        self._hash = hashlib.sha256()
        self._counts: dict[str, int] = {}
        self._number = 0
        self.header = self._read_header()

    @property
    def total(self) -> int:
        """How many records the header promises."""
        return sum(self.header.counts.values())

    def records(self) -> Iterator[FileRecord]:
        """The records in the order of the file; the last step makes sure that the file is whole and unchanged.

        Raises:
            FileError: At the first line that can't be read, or at the end if the file is torn or was changed.
        """
        while line := self._next():
            kind = self._decode(line, _Type).type
            if kind == END:
                self._check_end(line)
                return
            self._hash.update(line)
            self._counts[kind] = self._counts.get(kind, 0) + 1
            yield self._record(line)
        raise FileError(self._number + 1, "the file is torn: it ends before its last line")

    def _read_header(self) -> Header:
        line = self._next()
        if not line:
            raise FileError(1, "the file is empty")
        header: Header = self._decode(line, Header)
        if header.format != FORMAT:
            raise FileError(1, f"the format is {header.format!r}, this reads {FORMAT!r}")
        if header.version != VERSION or header.schema > SCHEMA_REVISION:
            raise FileError(
                1,
                f"the file is of version {header.version} and schema {header.schema}, this reads version {VERSION} up "
                f"to schema {SCHEMA_REVISION}: import it with the version of Memory OS that made it, or a newer one",
            )
        if header.user is not msgspec.UNSET:
            raise FileError(1, "this is the export of one user, which is for reading and not for importing")
        self._hash.update(line)
        return header

    def _next(self) -> bytes:
        line = self._stream.readline(LONGEST_LINE + 1)
        if not line:
            return b""
        self._number += 1
        if len(line) > LONGEST_LINE:
            raise FileError(self._number, f"it is longer than {LONGEST_LINE} bytes")
        return line

    def _record(self, line: bytes) -> FileRecord:
        given: Line = self._decode(line, Line)
        kind = KINDS.get(given.type)
        if kind is None:
            raise FileError(self._number, f"there is no type {given.type!r}; the types are {', '.join(KINDS)}")
        try:
            record = at_home(given, self._tenant_id)
        except ValueError as error:
            raise FileError(self._number, str(error)) from None
        content: dict[str, msgspec.Raw] = self._decode(record.encode(), dict[str, msgspec.Raw])
        if unknown := sorted(content.keys() - set(kind.columns)):
            raise FileError(self._number, f"a {kind.name} has no {', '.join(unknown)}")
        if "id" not in content:
            raise FileError(self._number, f"a {kind.name} needs an id")
        if kind.name == "entity":
            self._check_derived(given)
        return FileRecord(
            self._number,
            kind,
            self._decode(bytes(content["id"]), UUID),
            tuple(name for name in kind.columns if name in content),
            record,
            self._search_text(kind, content) if kind.searched else None,
        )

    def _check_derived(self, line: Line) -> None:
        entity: _Named = self._decode(bytes(line.record), _Named)
        if not entity.declared and canonical_name(entity.name) != line.derived.get(entity.id):
            raise FileError(self._number, f"the derived entity {entity.id} has its id from another name")

    def _search_text(self, kind: Kind, content: dict[str, msgspec.Raw]) -> str:
        parts = [self._decode(bytes(content[name]), str | None) for name in kind.searched if name in content]
        return search_text("\n".join(part for part in parts if part))

    def _check_end(self, line: bytes) -> None:
        trailer: Trailer = self._decode(line, Trailer)
        if trailer.sha256 != self._hash.hexdigest():
            raise FileError(
                self._number, "the file was changed or torn: its lines don't have the SHA-256 that it names"
            )
        empty = dict.fromkeys(KINDS, 0)
        if not empty | trailer.counts == empty | self.header.counts == empty | self._counts:
            raise FileError(self._number, "the file does not hold as many records as it says")
        if self._next():
            raise FileError(self._number, "something follows the last line")

    def _decode(self, line: bytes, shape: Any) -> Any:  # noqa: ANN401 - an instance of `shape`
        try:
            return decode(line, shape)
        except ValueError as error:
            raise FileError(self._number, str(error)) from None
