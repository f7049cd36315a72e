"""What supersedes a memory is brought like any other memory."""

from __future__ import annotations

import pytest

from memory_os.domain.principal import INSTANCE_TENANT
from memory_os.errors import InvalidInputError
from memory_os.memories.lifecycle_model import Supersession
from memory_os.memories.model import MemoryDraft
from memory_os.memories.replacing import check_body

GATED = {"dedup", "on_conflict"}
"""Fields for the gate, which a supersession never passes."""


def test_a_supersession_has_the_fields_of_a_draft() -> None:
    fields = {*Supersession.__struct_fields__}
    assert fields == {*MemoryDraft.__struct_fields__} - GATED | {"by"}


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        (Supersession(), ["/text"]),
        (Supersession(by=INSTANCE_TENANT, text="One.", tags=["a"]), ["/text", "/tags"]),
        (Supersession(by=INSTANCE_TENANT, subject=None), ["/subject"]),
    ],
    ids=["nothing", "both", "a null"],
)
def test_a_body_names_one_of_the_two(body: Supersession, pointers: list[str]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        check_body(body)
    assert [fault.pointer for fault in refused.value.errors] == pointers


def test_an_acting_user_goes_with_either() -> None:
    check_body(Supersession(by=INSTANCE_TENANT, user_id="ann"))
    check_body(Supersession(text="One.", user_id="ann"))
