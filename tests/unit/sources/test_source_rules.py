"""What sources, passages and evidence must satisfy, and what a bundle of evidence says once."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from memory_os.domain.principal import INSTANCE_TENANT, Principal
from memory_os.domain.sources import DELETION_POLICIES, SOURCE_KINDS, SUPPORTS
from memory_os.errors import InvalidInputError, UnknownTermError
from memory_os.memories.model import MemoryDraft, Readers
from memory_os.sources.checking import check_draft, check_passages, check_patch
from memory_os.sources.evidence_model import EvidenceAddition, EvidenceDraft
from memory_os.sources.inheriting import audience_of, with_visibility
from memory_os.sources.model import LOCATOR_BYTES, PassageDraft, Source, SourceDraft, SourcePatch
from memory_os.sources.resolving import Support, evidence_faults

ANN = Principal(INSTANCE_TENANT, "writer", user_id="ann")
IDENT = UUID(int=7)


@pytest.mark.parametrize("kind", SOURCE_KINDS)
def test_each_kind_is_known(kind: str) -> None:
    check_draft(SourceDraft(kind, "Notes"), ANN, max_text_chars=10)


@pytest.mark.parametrize("support", SUPPORTS)
def test_each_support_is_known(support: str) -> None:
    assert evidence_faults([EvidenceDraft(IDENT, support)]) == []


def test_the_policies_are_three() -> None:
    assert list(DELETION_POLICIES) == ["keep", "orphan-archive", "cascade"]


def test_a_word_that_is_no_support_is_met_with_the_nearest() -> None:
    with pytest.raises(UnknownTermError) as refused:
        evidence_faults([EvidenceDraft(IDENT, "states"), EvidenceDraft(IDENT, "suports")])
    assert refused.value.extra["did_you_mean"] == "supports"
    assert refused.value.errors[0].pointer == "/evidence/1/support"


def test_pointers_begin_where_the_evidence_stands() -> None:
    drafts = [EvidenceDraft(IDENT, "states", quote=" "), EvidenceDraft(IDENT, "states", quote="\ud800")]
    assert [fault.pointer for fault in evidence_faults(drafts)] == ["/evidence/0/quote", "/evidence/1/quote"]
    assert [fault.pointer for fault in evidence_faults(drafts[:1], "")] == ["/quote"]


def test_all_faults_are_named_at_once() -> None:
    passages = [PassageDraft(" "), PassageDraft("x" * 11), PassageDraft("x", IDENT), PassageDraft("y", IDENT)]
    draft = SourceDraft("url", " ", uri="\ud800", readers=Readers(["bob"]), passages=passages)
    with pytest.raises(InvalidInputError) as refused:
        check_draft(draft, ANN, max_text_chars=10)
    assert [fault.pointer for fault in refused.value.errors] == [
        "/title",
        "/uri",
        "/readers",
        "/passages/0/text",
        "/passages/1/text",
        "/passages/3/id",
    ]


def test_a_locator_is_small() -> None:
    room = LOCATOR_BYTES - len('{"x":""}')
    check_passages([PassageDraft("a", locator={"x": "y" * room})], max_text_chars=10)
    with pytest.raises(InvalidInputError):
        check_passages([PassageDraft("a", locator={"x": "y" * (room + 1)})], max_text_chars=10)


def test_passages_without_ids_never_clash() -> None:
    check_passages([PassageDraft("a"), PassageDraft("a")], max_text_chars=10)


def test_nobody_makes_anothers_source_private() -> None:
    source = SourcePatch(visibility="private")
    current = _source("bob")
    with pytest.raises(InvalidInputError) as refused:
        check_patch(source, current, ANN)
    assert [fault.pointer for fault in refused.value.errors] == ["/visibility"]
    check_patch(source, _source("ann"), ANN)


def test_an_addition_is_evidence_and_a_word_about_readers() -> None:
    fields = {*EvidenceAddition.__struct_fields__}
    assert fields == {*EvidenceDraft.__struct_fields__, "widen", "user_id"}
    given = EvidenceAddition(IDENT, "states", IDENT, "ship", 0.5, widen=True)
    assert given.draft() == EvidenceDraft(IDENT, "states", IDENT, "ship", 0.5)


def test_the_same_span_is_said_once_whatever_its_confidence() -> None:
    one = Support(IDENT, IDENT, "states", 0.5, 0, 4)
    assert one.key == Support(IDENT, IDENT, "states", 1.0, 0, 4).key
    assert one.key != Support(IDENT, IDENT, "states", 0.5, 0, 5).key


def test_a_draft_that_names_no_visibility_is_for_all() -> None:
    draft = with_visibility(MemoryDraft("M.", "Attribute"))
    assert draft.visibility == "tenant"
    assert audience_of(draft, ANN).everybody
    private = MemoryDraft("M.", "Attribute", visibility="private")
    assert with_visibility(private) is private
    assert audience_of(private, ANN).users == {"ann"}


def _source(user: str) -> Source:
    now = datetime.now(UTC)
    return Source(IDENT, "url", "Notes", None, None, None, {}, "tenant", user, Readers(), now, now, 1)
