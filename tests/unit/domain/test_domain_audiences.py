"""Who may read a record, and whose readers include another's."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.audiences import Audience
from memory_os.memories.model import Readers

USERS, GROUPS = ("ann", "bob", "cat"), ("crew", "staff")


class Record:
    """What has readers."""

    def __init__(self, visibility: str, user_id: str | None = None, users: object = (), groups: object = ()) -> None:
        self.visibility = visibility
        self.user_id = user_id
        self.readers = Readers(list(users), list(groups))  # type: ignore[call-overload] # sets and tuples of texts


records = st.builds(
    Record,
    st.sampled_from(("tenant", "private", "restricted")),
    st.sampled_from((None, *USERS)),
    st.sets(st.sampled_from(USERS)),
    st.sets(st.sampled_from(GROUPS)),
)


def sees(record: Record, user: str, groups: tuple[str, ...]) -> bool:
    """The rule of the policy, a second time."""
    listed = user in record.readers.users or not set(groups).isdisjoint(record.readers.groups)
    return record.visibility == "tenant" or record.user_id == user or (record.visibility == "restricted" and listed)


@given(records)
def test_an_audience_admits_whom_the_policy_admits(record: Record) -> None:
    for user, groups in product(USERS, [(), ("crew",), ("staff",), GROUPS]):
        assert Audience.of(record).admits(user, groups) == sees(record, user, groups)


@given(records, records)
def test_one_covers_another_if_nobody_loses_sight(wide: Record, narrow: Record) -> None:
    covers = Audience.of(wide).covers(Audience.of(narrow))
    if covers:
        for user, groups in product(USERS, [(), ("crew",), ("staff",), GROUPS]):
            assert sees(wide, user, groups) or not sees(narrow, user, groups)


@given(records)
def test_everybody_covers_all_and_each_itself(record: Record) -> None:
    audience = Audience.of(record)
    assert Audience(everybody=True).covers(audience)
    assert audience.covers(audience)
    assert audience.everybody or not audience.covers(Audience(everybody=True))


def test_lists_count_while_a_record_is_restricted_only() -> None:
    kept = {"users": ["bob"], "groups": ["crew"]}
    assert Audience.of(Record("private", "ann", **kept)) == Audience(everybody=False, users=frozenset({"ann"}))
    assert Audience.of(Record("restricted", None, **kept)).users == {"bob"}


def test_what_belongs_to_nobody_and_is_private_nobody_reads() -> None:
    nobody = Audience.of(Record("private"))
    assert not nobody.admits(None, ())
    assert not nobody.admits("ann", GROUPS)
