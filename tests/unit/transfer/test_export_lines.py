"""The lines of an export: what they hold, and ids of derived entities that have no tenant in a file."""

from __future__ import annotations

import hashlib
import io
import json
from datetime import UTC, datetime
from uuid import UUID, uuid4

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.ids import derived_entity_id
from memory_os.transfer.format import (
    NOWHERE,
    FileError,
    FileTenant,
    Line,
    LineWriter,
    at_home,
    decode,
    derived_ids,
    header_of,
    replace_ids,
)
from memory_os.transfer.kinds import KINDS
from memory_os.transfer.reading import FileReader

HERE, THERE = UUID(int=1), UUID(int=2)
NORTH = FileTenant("North", "UTC")


def written(records: list[tuple[str, str]], names: dict[str, str]) -> list[bytes]:
    writer = LineWriter()
    counts = {kind: sum(name == kind for name, _ in records) for kind in KINDS}
    lines = [writer.header(header_of(NORTH, datetime(2026, 1, 1, tzinfo=UTC), counts))]
    lines += [writer.record(kind, record, names) for kind, record in records]
    return [*lines, writer.trailer()]


def test_the_trailer_has_the_digest_of_all_lines_before() -> None:
    lines = written([("memory", '{"id":"x"}')], {})
    end = json.loads(lines[-1])
    assert end["sha256"] == hashlib.sha256(b"".join(lines[:-1])).hexdigest()
    assert end["counts"]["memory"] == 1
    assert lines[1] == b'{"type":"memory","record":{"id":"x"}}\n'


@given(st.text(min_size=1))
def test_a_derived_entity_has_no_tenant_in_a_file_and_the_readers_afterwards(name: str) -> None:
    name = name.encode("utf-8", "replace").decode()
    mine, theirs = derived_entity_id(HERE, name), derived_entity_id(THERE, name)
    declared = uuid4()
    record = json.dumps({"id": str(declared), "source_entity_id": str(mine), "before": {str(mine): [str(mine)]}})
    line = written([("edge", record)], {str(mine): name})[1]
    assert str(mine) not in line.decode()
    read: Line = decode(line, Line)
    assert read.derived == {derived_entity_id(NOWHERE, name): name}
    assert json.loads(at_home(read, HERE)) == json.loads(record)
    assert json.loads(at_home(read, THERE)) == json.loads(record.replace(str(mine), str(theirs)))


def test_only_whole_texts_of_that_form_are_taken_for_ids() -> None:
    ident, random = str(derived_entity_id(HERE, "x")), str(uuid4())
    record = json.dumps({"a": ident, "b": f"see {ident}", "c": f'"{ident}"', "d": random, "e": ident.upper()})
    assert derived_ids(record) == {ident}
    moved = json.loads(replace_ids(record, {ident: "new", random: "not this"}))
    assert moved == json.loads(record) | {"a": "new"}


def test_an_id_that_is_not_that_of_its_name_is_refused() -> None:
    line = Line("edge", msgspec.Raw(b"{}"), {uuid4(): "acme"})
    with pytest.raises(ValueError, match="has its id from another name than 'acme'"):
        at_home(line, HERE)


def test_records_are_read_with_what_their_search_needs() -> None:
    record = json.dumps({"id": str(HERE), "text": "An e-mail", "title": None})
    lines = written([("memory", record)], {})
    (read,) = FileReader(io.BytesIO(b"".join(lines)), THERE).records()
    assert (read.number, read.kind.name, read.id, read.columns) == (2, "memory", HERE, ("id", "text", "title"))
    assert read.search_text == "an e-mail e mail"


def test_deep_nesting_is_a_fault_of_its_line() -> None:
    deep = "[" * 5000 + "]" * 5000
    lines = written([("memory", f'{{"id":"{HERE}","metadata":{deep}}}')], {})
    with pytest.raises(FileError, match="line 2: it is nested too deeply"):
        list(FileReader(io.BytesIO(b"".join(lines)), THERE).records())
