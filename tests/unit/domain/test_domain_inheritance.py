"""Nobody may read what was taken from sources who may not read all of them, but the writer always can."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given
from hypothesis import strategies as st

from memory_os.domain.audiences import Audience
from memory_os.domain.inheritance import Readership, is_wider, narrowest

USERS, GROUPS = ("ann", "bob", "cat", "dan"), ("crew", "staff")
MEMBERSHIPS = ((), ("crew",), ("staff",), GROUPS)

audiences = st.one_of(
    st.just(Audience(everybody=True)),
    st.builds(
        lambda users, groups: Audience(everybody=False, users=users, groups=groups),
        st.frozensets(st.sampled_from(USERS)),
        st.frozensets(st.sampled_from(GROUPS)),
    ),
)
writers = st.tuples(st.sampled_from((None, *USERS)), st.sampled_from(MEMBERSHIPS))


def stored(found: Readership, user_id: str | None) -> Audience:
    """The readers of a memory of that user with these columns."""
    columns = {"visibility": found.visibility, "user_id": user_id}
    return Audience.of_columns({**columns, "reader_users": found.users, "reader_groups": found.groups})


@given(st.lists(audiences, max_size=4), writers)
def test_who_reads_the_memory_reads_every_source(
    sources: list[Audience], writer: tuple[str | None, tuple[str, ...]]
) -> None:
    assume(all(source.admits(*writer) for source in sources))
    found = narrowest(sources, *writer)
    if found is None:
        assert writer[0] is None
        return
    memory = stored(found, writer[0])
    assert memory.admits(*writer)
    for user, groups in product(USERS, MEMBERSHIPS):
        if user != writer[0] and memory.admits(user, groups):
            assert all(source.admits(user, groups) for source in sources)


@given(st.lists(audiences, max_size=4), writers)
def test_what_is_inherited_is_never_wider(sources: list[Audience], writer: tuple[str | None, tuple[str, ...]]) -> None:
    assume(all(source.admits(*writer) for source in sources))
    found = narrowest(sources, *writer)
    if found is not None:
        assert not any(is_wider(stored(found, writer[0]), source, writer[0]) for source in sources)


@given(audiences, audiences, writers)
def test_what_is_not_wider_lets_nobody_else_read(
    memory: Audience, source: Audience, writer: tuple[str | None, tuple[str, ...]]
) -> None:
    if not is_wider(memory, source, writer[0]):
        for user, groups in product(USERS, MEMBERSHIPS):
            assert user == writer[0] or not memory.admits(user, groups) or source.admits(user, groups)


@given(st.lists(audiences, min_size=1, max_size=3), writers)
def test_the_readers_of_all_sources_are_left_out_only_for_the_writer(
    sources: list[Audience], writer: tuple[str | None, tuple[str, ...]]
) -> None:
    """Whom every source lists by the same name reads the memory, where that lets the writer read it."""
    assume(all(source.admits(*writer) for source in sources))
    found = narrowest(sources, *writer)
    assume(found is not None and found.visibility != "private")
    assert found is not None
    memory = stored(found, writer[0])
    for user in USERS:
        assert memory.admits(user, ()) or not all(source.everybody or user in source.users for source in sources)


def test_the_columns_name_the_writer_once() -> None:
    ours = Audience(everybody=False, users=frozenset({"ann", "bob"}), groups=frozenset({"crew"}))
    assert narrowest([ours], "ann", ()) == Readership("restricted", ("bob",), ("crew",))
    assert narrowest([Audience(everybody=False, users=frozenset({"ann"}))], "ann", ()) == Readership("private")
    assert narrowest([], None, ()) == Readership("tenant")


def test_a_reader_by_name_here_and_by_group_there_is_left_alone() -> None:
    named = Audience(everybody=False, users=frozenset({"ann", "bob"}))
    grouped = Audience(everybody=False, groups=frozenset({"crew"}))
    assert narrowest([named, grouped], "ann", ("crew",)) == Readership("private")
    assert narrowest([named, grouped], None, ("crew",)) is None
