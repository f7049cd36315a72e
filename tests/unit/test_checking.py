"""The checks that every area makes of what a client brings."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from memory_os.changes import changed_columns, values_before
from memory_os.checking import (
    check_version,
    check_word,
    moment_faults,
    parse_moment,
    payload_faults,
    reader_faults,
    text_faults,
    window_faults,
)
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import PAYLOAD_BYTES
from memory_os.errors import InvalidInputError, PreconditionFailedError, UnknownTermError
from memory_os.memories.model import Readers

NAMES = st.sampled_from(["ann", "bo", "cy"])


def test_a_word_outside_a_list_is_answered_with_the_list_and_the_nearest() -> None:
    for passed in ("active", None, UNSET):
        check_word("/status", passed, ("active", "archived"), noun="status")
    with pytest.raises(UnknownTermError) as caught:
        check_word("/status", "Active ", ("active", "archived"), noun="status")
    assert caught.value.extra == {"allowed": ["active", "archived"], "did_you_mean": "active"}
    assert [fault.pointer for fault in caught.value.errors] == ["/status"]


def test_a_version_is_held_against_the_stored_one() -> None:
    check_version(None, 3)
    check_version(3, 3)
    with pytest.raises(PreconditionFailedError):
        check_version(2, 3)


def test_texts_times_and_payloads_are_looked_at_where_they_are_given() -> None:
    shape = SimpleNamespace(a="ok", b="x\x00", c=" ", d=None, e=UNSET, f="\ud800", t=datetime(2026, 1, 1))  # noqa: DTZ001 - the fault
    faults = text_faults(shape, "abcdefg", solid="ac")
    assert [fault.pointer for fault in faults] == ["/b", "/c", "/f"]
    assert [fault.pointer for fault in moment_faults(shape, "at")] == ["/t"]
    assert payload_faults(UNSET, "/payload") == []
    assert payload_faults({"a": "x" * (PAYLOAD_BYTES - 8)}, "/payload") == []
    for bad in ({"a": "x" * PAYLOAD_BYTES}, {"a\x00": 1}, {"a": ["\x00"]}):
        assert [fault.pointer for fault in payload_faults(bad, "/payload")] == ["/payload"]


def test_a_time_in_the_address_needs_an_offset() -> None:
    assert parse_moment("as_of", None) is None
    assert parse_moment("as_of", "2026-01-01T01:00:00+01:00") == datetime(2026, 1, 1, tzinfo=UTC)
    for bad in ("2026-01-01T00:00:00", "0001-01-01T00:00:00+01:00", "2026-01-01", "1767225600", "0.5", "", "now"):
        with pytest.raises(InvalidInputError) as caught:
            parse_moment("as_of", bad)
        assert [fault.pointer for fault in caught.value.errors] == ["/as_of"]


def test_a_window_may_be_open_or_empty_but_not_backward() -> None:
    early, late = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    for start, end in ((None, None), (None, early), (late, None), (early, late), (early, early)):
        assert window_faults(start, end) == []
    assert [fault.pointer for fault in window_faults(late, early)] == ["/valid_to"]


@given(
    user=st.none() | NAMES,
    caller_groups=st.sets(NAMES),
    owner=st.none() | NAMES,
    visibility=st.sampled_from(["tenant", "private", "restricted"]),
    users=st.lists(NAMES),
    groups=st.lists(NAMES),
)
def test_what_passes_can_be_read_back_by_its_writer_under_the_policy(
    user: str | None,
    caller_groups: set[str],
    owner: str | None,
    visibility: str,
    users: list[str],
    groups: list[str],
) -> None:
    principal = Principal(uuid4(), "writer", user_id=user, groups=tuple(caller_groups))
    faults = reader_faults(principal, owner=owner, visibility=visibility, users=users, groups=groups, named=False)
    # The policy of the database, word for word; there, nothing equals an unset user.
    own = owner is not None and user is not None and owner == user
    listed = (user is not None and user in users) or bool(set(groups) & caller_groups)
    assert (faults == []) == (visibility == "tenant" or own or (visibility == "restricted" and listed))


def test_readers_belong_to_restricted_records_and_are_texts() -> None:
    principal = Principal(uuid4(), "writer", user_id="ann")

    def pointers(visibility: str, users: list[str]) -> list[str]:
        faults = reader_faults(principal, owner="ann", visibility=visibility, users=users, groups=[], named=bool(users))
        return [fault.pointer for fault in faults]

    assert pointers("tenant", ["bo"]) == ["/readers"]
    assert pointers("restricted", ["bo", "\ud800"]) == ["/readers/users/1"]


class _Patch(Struct):
    title: str | UnsetType = UNSET
    visibility: str | UnsetType = UNSET
    readers: Readers | UnsetType = UNSET


class _Row(Struct):
    title: str
    visibility: str
    readers: Readers


def test_only_what_differs_is_changed() -> None:
    row = _Row("T", "restricted", Readers(["ann"], []))
    assert changed_columns(_Patch(), row) == {}
    assert changed_columns(_Patch(title="T", visibility="restricted", readers=Readers(["ann"], [])), row) == {}
    assert changed_columns(_Patch(title="U"), row) == {"title": "U"}
    wider = changed_columns(_Patch(readers=Readers(["ann", "bo"], ["hr"])), row)
    assert wider == {"reader_users": ["ann", "bo"], "reader_groups": ["hr"]}
    assert values_before(row, wider) == {"readers": row.readers}
    opened = changed_columns(_Patch(visibility="tenant"), row)
    assert opened == {"visibility": "tenant", "reader_users": [], "reader_groups": []}
    assert values_before(row, {**opened, "search": "x"}) == {"visibility": "restricted", "readers": row.readers}
