"""Proposing Insights: planning a candidate for each community that says something new, and storing it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec

from memory_os.cycles.gathering import Community
from memory_os.cycles.planning import Made, Planned, Run, Undoing
from memory_os.domain.audiences import Audience
from memory_os.domain.cycles.insights import Member, Summary, candidate_id, says_nothing_new, summarise
from memory_os.domain.cycles.rules import RuleName
from memory_os.errors import ConflictError
from memory_os.outbox.events import NewEvent
from memory_os.storage.database import Transaction

BATCH: Final = 100
"""Candidates of one batch, each of `LARGEST` members at most."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What storing a candidate takes beyond its action: its words, and its memories as they were when it got them."""

    rule: RuleName
    community: Community
    summary: Summary
    versions: Mapping[UUID, int]


async def propose(tx: Transaction, run: Run, rule: RuleName, communities: Sequence[Community]) -> list[Planned]:
    """A candidate for each community, unless one of mostly the same members and for the same readers was proposed.

    What this run has proposed itself does not count: its communities have no members in common but single Behaviors
    and entities, so that a trial run, which stores nothing, comes to the same.
    """
    if not communities:
        return []
    known = await _known(tx, run, communities)
    fresh = [one for one in communities if not says_nothing_new(one.members, known[one.audience])]
    texts = await _texts(tx, fresh)
    return [_planned(tx, rule, one, texts) for one in fresh if all(ident in texts for ident in one.memories)]


def _planned(tx: Transaction, rule: RuleName, community: Community, texts: Mapping[UUID, Mapping[str, Any]]) -> Planned:
    rows = [texts[ident] for ident in community.memories]
    summary = summarise(_members(rows, community.references or {}))
    return Planned(
        "insight",
        candidate_id(tx.tenant_id, community.members),
        {},
        {"status": "open", "members": list(map(str, community.members)), "strength": community.strength},
        work=Proposal(rule, community, summary, {row["id"]: row["version"] for row in rows}),
    )


def _members(rows: Sequence[Mapping[str, Any]], references: Mapping[UUID, int]) -> list[Member]:
    """The memories of a community. What two of them call by different words is shared by the first of these."""
    words: dict[UUID, str] = {}
    for row in rows:
        for entity, name in zip(row["entities"] or (), row["names"] or (), strict=True):
            words[entity] = min(words.get(entity, name), name)
    return [
        Member(
            row["id"],
            row["layer"],
            row["text"],
            row["title"],
            row["confidence"],
            references.get(row["id"], 0),
            frozenset(words[entity] for entity in row["entities"] or ()),
        )
        for row in rows
    ]


async def _known(
    tx: Transaction, run: Run, communities: Iterable[Community]
) -> defaultdict[Audience, list[frozenset[UUID]]]:
    ids = sorted({ident for one in communities for ident in one.memories})
    known: defaultdict[Audience, list[frozenset[UUID]]] = defaultdict(list)
    for row in await tx.hot("known_insights", {"tenant_id": tx.tenant_id, "run_id": run.id, "ids": ids}):
        known[Audience.of_columns(row)].append(frozenset(row["members"]))
    return known


async def _texts(tx: Transaction, communities: Iterable[Community]) -> dict[UUID, dict[str, Any]]:
    ids = sorted({ident for one in communities for ident in one.memories})
    rows = await tx.hot("insight_texts", {"tenant_id": tx.tenant_id, "ids": ids}) if ids else []
    return {row["id"]: row for row in rows}


async def store(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    """Store planned candidates, but those of which a member has changed since it was looked at."""
    proposals: list[tuple[Planned, Proposal]] = [(one, one.work) for one in planned]
    held = await _held(tx, [one.community for _, one in proposals])
    rows = [_row(change.target, one) for change, one in proposals if _stands(one, held)]
    given = {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": proposals[0][1].rule}
    made = {row["id"] for row in await tx.hot("store_insights", {**given, "rows": msgspec.json.encode(rows).decode()})}
    return Made([one for one in planned if one.target in made])


async def _held(tx: Transaction, communities: Sequence[Community]) -> dict[UUID, Mapping[str, Any]]:
    """The members of communities, held until the end of the transaction."""
    memories = sorted({ident for one in communities for ident in one.memories})
    entities = sorted({ident for one in communities for ident in one.entities})
    rows = await tx.hot("hold_insight_memories", {"tenant_id": tx.tenant_id, "ids": memories})
    if entities:
        rows += await tx.hot("hold_insight_entities", {"tenant_id": tx.tenant_id, "ids": entities})
    return {row["id"]: row for row in rows}


def _stands(proposal: Proposal, held: Mapping[UUID, Mapping[str, Any]]) -> bool:
    community = proposal.community
    if not all(ident in held for ident in community.members):
        return False
    readers = (Audience.of_columns(held[ident]) for ident in community.entities)
    return all(held[ident]["version"] == version for ident, version in proposal.versions.items()) and all(
        one.covers(community.audience) for one in readers
    )


def _row(ident: UUID, proposal: Proposal) -> dict[str, Any]:
    community = proposal.community
    return {
        "id": ident,
        "title": proposal.summary.title,
        "text": proposal.summary.text,
        "strength": community.strength,
        "memories": community.memories,
        "entities": community.entities,
        **reader_columns(community.audience),
    }


def reader_columns(audience: Audience) -> dict[str, object]:
    """The readers of a candidate as its row keeps them; what one user alone may read is that user's own."""
    if not audience.everybody and not audience.groups and len(audience.users) == 1:
        (user,) = audience.users
        return {"visibility": "private", "user_id": user, "reader_users": [], "reader_groups": []}
    return audience.columns()


async def take_back(tx: Transaction, undoing: Undoing, action: Mapping[str, Any]) -> list[NewEvent]:
    """Drop a candidate that nobody has decided about; one that is gone with a member of it needs no undoing.

    Raises:
        ConflictError: If somebody has accepted or rejected it.
    """
    del undoing
    ident = action["target_id"]
    rows = await tx.hot("hold_insight", {"tenant_id": tx.tenant_id, "id": ident, "action_id": action["id"]})
    if not rows:
        return []
    status, memory = rows[0]["status"], rows[0]["memory_id"]
    if status == "accepted":
        became = f"as the Insight {memory}: delete that one" if memory else "as an Insight that is gone by now"
        raise ConflictError(f"the candidate {ident} was accepted {became}")
    if status == "rejected":
        raise ConflictError(f"the candidate {ident} was rejected: it stays, so that it is not proposed again")
    await tx.touched("drop_insight", {"tenant_id": tx.tenant_id, "id": ident})
    return []
