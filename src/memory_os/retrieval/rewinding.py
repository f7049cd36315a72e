"""A memory as it stood at an earlier moment, from its row of today and the acts on it since then.

Acts keep what was there before them. Taken back one by one, the newest first, they leave the memory as it was. What
nobody can know any more is not guessed: then there is no memory of that moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from memory_os.domain.labels import IN_FORCE
from memory_os.domain.principal import Principal
from memory_os.memories.history import could_read

CLOSED: Final = ("superseded", "expired")

_MOMENTS: Final = ("occurred_at", "valid_from", "valid_to")
_SHOWN: Final = frozenset({"text", "title", "label", "status", "confidence", "superseded_by", *_MOMENTS})
"""What an answer shows of a memory, and acts change."""


@dataclass(frozen=True, slots=True)
class PastAct:
    """An act after the moment asked about, as far as it takes to take it back.

    Attributes:
        id: The act.
        kind: What was done.
        draft: It let a draft merge, which changes nothing but how sure the memory is.
        states: By memory, the columns that it had before, as JSON holds them. None where the act kept nothing of them.
        audiences: Who could read what was there before; the content of a change is told to nobody else.
        undone: The act that this one took back.
    """

    id: UUID
    kind: str
    draft: bool
    states: Mapping[str, Mapping[str, Any]] | None
    audiences: list[dict[str, Any]]
    undone: str | None


def past_act(row: Mapping[str, Any]) -> PastAct:
    """An act from its row of `acts_since`."""
    states: dict[str, Mapping[str, Any]] | None = None
    if row["states"] is not None:
        states = {state["id"]: state for state in row["states"] if "id" in state}
    elif row["changed"] is not None:
        states = {str(row["memory_id"]): row["changed"]}
    elif row["confidence"] is not None:
        states = {str(row["memory_id"]): {"confidence": row["confidence"]}}
    draft = row["kind"] == "merge" and row["other_id"] is None
    return PastAct(row["id"], row["kind"], draft, states, row["audiences"] or [], row["undone"])


def rewind(row: Mapping[str, Any], acts: Sequence[PastAct], principal: Principal) -> dict[str, Any] | None:
    """What an answer shows of a memory, as it was before these acts.

    Args:
        row: The memory as it is now.
        acts: The acts on it, and those that it had to do with, the newest first; every one since the moment.
        principal: Who asks. They are told no content that they could not read when it was there.

    Returns:
        The row as it was, or None where that is not known, or not this reader's to know.
    """
    known = {str(act.id) for act in acts}
    then = dict(row)
    for act in acts:
        if act.kind == "undo" and act.states is None and act.undone not in known:
            return None  # an older version kept nothing of what an undo took away
        before = {name: value for name, value in (act.states or {}).get(str(row["id"]), {}).items() if name in _SHOWN}
        if act.kind == "change" and before and not could_read(act.audiences, principal):
            return None
        then |= {name: _value(name, value) for name, value in before.items()}
    return then


def in_force(state: Mapping[str, Any], moment: datetime, *, history: bool) -> bool:
    """Whether a memory in that state answers a question about a moment; see `hydrate_records`."""
    begins, ends, status = state["valid_from"], state["valid_to"], state["status"]
    if begins is not None and begins > moment:
        return False
    if history:
        return True
    if status in CLOSED:
        return ends is not None and ends > moment
    return status in IN_FORCE and (ends is None or ends > moment)


def touched_since(rows: Iterable[Mapping[str, Any]], moment: datetime) -> set[str]:
    """Edges and links that were elsewhere at that moment, or not there: acts have moved or removed them since.

    Args:
        rows: The acts on the nodes at their ends, each with the ids of those that it concerned.
        moment: The moment.
    """
    touched = set[str]()
    for row in rows:
        held_then = row["at"] <= moment and (row["undone_at"] is None or row["undone_at"] > moment)
        if held_then != (row["undone_at"] is None):
            touched.update(row["concerned"] or ())
    return touched


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - of any column
    if value is None:
        return None
    if name in _MOMENTS:
        return msgspec.convert(value, datetime)
    return UUID(value) if name == "superseded_by" else value
