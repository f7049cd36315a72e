"""The ids that are kept beside an answer, so that it can be erased with the records that it names."""

from __future__ import annotations

from uuid import UUID, uuid4

from memory_os.api.idempotency import MOST_IDS, ids_in


def test_every_id_of_an_answer_is_found_once() -> None:
    one, other = uuid4(), uuid4()
    body = f'{{"memory": {{"id": "{one}"}}, "text": "see {other}, {one}", "no": "{one.hex}"}}'.encode()
    assert ids_in(body) == sorted([one, other])
    assert ids_in(b"{}") == []


def test_an_answer_with_too_many_ids_is_marked_as_naming_more() -> None:
    ids = [str(UUID(int=number)) for number in range(1, MOST_IDS + 2)]
    assert len(ids_in(" ".join(ids[:-1]).encode())) == MOST_IDS
    assert ids_in(" ".join(ids).encode()) == [UUID(int=0)]
