"""A diff leads from one version of a profile to the next, and a version has the same id whenever it is planned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.cycles.profiles import SECTIONS, Content, differ, section_of, sections_by_label, version_id

NOW = datetime(2026, 3, 1, 2, tzinfo=UTC)

contents = st.dictionaries(
    st.sampled_from(list(SECTIONS)), st.lists(st.sampled_from("abcdef"), unique=True).map(list), max_size=4
)


@given(contents, contents)
def test_a_diff_leads_from_one_to_the_other(before: Content, after: Content) -> None:
    changes = differ(before, after)
    for section in SECTIONS:
        change = changes.get(section, {"added": (), "removed": ()})
        old, new = set(before.get(section, ())), set(after.get(section, ()))
        assert (old - set(change["removed"])) | set(change["added"]) == new
        assert old >= set(change["removed"])
        assert not old & set(change["added"])
        assert section not in changes or change["added"] or change["removed"]


@given(contents)
def test_another_order_alone_is_no_change(content: Content) -> None:
    assert differ(content, {section: ids[::-1] for section, ids in content.items()}) == {}


def test_an_id_depends_on_what_it_follows_which_it_is_and_when() -> None:
    origin = uuid4()
    first = version_id(origin, 1, NOW)
    assert version_id(UUID(str(origin)), 1, datetime.fromisoformat(NOW.isoformat())) == first
    others = {version_id(uuid4(), 1, NOW), version_id(origin, 2, NOW), version_id(origin, 1, NOW + timedelta(days=7))}
    assert len({first, *others}) == 4


def test_labels_have_the_sections_that_they_belong_to() -> None:
    assert set(sections_by_label().values()) == set(SECTIONS) - {"entities"}
    assert all(section_of(label) == section for label, section in sections_by_label().items())
