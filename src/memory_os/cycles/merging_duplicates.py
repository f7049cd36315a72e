"""Memories that say the same and that the gate let through are merged, by the same judgement.

The gate leaves out what a client stores without it, and what it could not know yet: names that were declared since, and
texts that were changed since. Open reviews are judged again, and then whatever was stored or changed since the last run
is held against what is nearest to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from memory_os.cycles.pairing import Merging, Pair, Pairing, similarities
from memory_os.cycles.planning import Cursor, Made, Plan, Planned, Run, Work
from memory_os.cycles.setting_aside import undo_memory_act
from memory_os.domain.gate.thresholds import thresholds_for
from memory_os.embedding.port import EmbedderIdentity
from memory_os.memories.absorbing import absorb
from memory_os.memories.comparing import Guard, key_of, read_aliases
from memory_os.memories.model import Memory
from memory_os.memories.nominating import JUDGED, READ
from memory_os.memories.reading import existing_memories
from memory_os.memories.reviewing import settle_reviews
from memory_os.memories.states import enter_scopes
from memory_os.storage.checks import current_model
from memory_os.storage.database import Transaction

BATCH: Final = 50
"""Memories, or reviews, of one batch: each is a scan of the vectors of its scope, or a walk through their index."""

REACH: Final = 120
"""Vectors that are taken from the index for each memory; some are of passages, or of memories of others."""

OVERLAP: Final = timedelta(days=1)
"""By how much a run looks back beyond the last one: a memory may have been committed, or got its vector, after that."""

RULE: Final = "merge_duplicates"
_FIRST: Final = str(UUID(int=0))
_NO_MODEL: Final = EmbedderIdentity("", 0)


async def _plan(tx: Transaction, run: Run, cursor: Cursor | None) -> Plan:
    at = cursor or {"look_at": "reviews", "after": _FIRST, "since": await _since(tx, run)}
    look = _look_at_reviews if at["look_at"] == "reviews" else _look_at_memories
    return await look(tx, run, at)


async def _since(tx: Transaction, run: Run) -> str | None:
    given = {"tenant_id": tx.tenant_id, "cycle": run.cycle, "moment": run.moment}
    last: datetime | None = (await tx.hot("last_finished_run", given))[0]["moment"]
    return None if last is None else (last - OVERLAP).isoformat()


async def _look_at_reviews(tx: Transaction, run: Run, at: Cursor) -> Plan:
    """Judge again what the gate was not sure of."""
    model = await current_model(tx) or _NO_MODEL
    rows = await tx.hot("open_duplicates", {"tenant_id": tx.tenant_id, "after": at["after"], "batch": BATCH})
    pairs = [(row["memory_id"], row["other_id"]) for row in rows]
    known = await similarities(tx, model.model, pairs)
    judged = [Pair(*pair, known.get(pair)) for pair in pairs]
    pairing = await _pairing(tx, run, model, judged)
    for pair in judged:
        await pairing.take(pair)
    if len(rows) == BATCH:
        return Plan(pairing.changes, {**at, "after": str(rows[-1]["id"])})
    return Plan(pairing.changes, {**at, "look_at": "memories", "after": _FIRST})


async def _look_at_memories(tx: Transaction, run: Run, at: Cursor) -> Plan:
    """Hold what was stored or changed against what is nearest to it."""
    model = await current_model(tx) or _NO_MODEL
    given = {"after": at["after"], "since": at["since"], "batch": BATCH}
    rows = await tx.hot("changed_memories", {**_run(tx, run), **given})
    found = await _nominate(tx, run, model, [row["id"] for row in rows])
    pairing = await _pairing(tx, run, model, [pair for pairs in found.values() for pair in pairs])
    for pairs in found.values():
        for pair in _worth_judging(pairing, pairs):
            await pairing.take(pair)
        await asyncio.sleep(0)  # reading texts takes milliseconds, and others wait for this process
    return Plan(pairing.changes, {**at, "after": str(rows[-1]["id"])} if len(rows) == BATCH else None)


async def _nominate(tx: Transaction, run: Run, model: EmbedderIdentity, ids: Sequence[UUID]) -> dict[UUID, list[Pair]]:
    """By memory, what may say the same, the most similar first."""
    if not ids:
        return {}
    memories = await existing_memories(tx, ids)
    found: dict[UUID, list[Pair]] = {ident: [] for ident in ids if ident in memories}
    keys = [key_of(memories[ident]).hex() for ident in found]
    given = {"ids": list(found), "keys": keys, "model": model.model, "read": READ, "reach": REACH}
    for row in await tx.hot("duplicate_candidates", {**_run(tx, run), **given}):
        found[row["memory_id"]].append(Pair(row["memory_id"], row["other_id"], row["similarity"]))
    for pairs in found.values():
        pairs.sort(key=lambda pair: (-_nearness(pair), pair.other))
    return found


def _nearness(pair: Pair) -> float:
    return -1.0 if pair.similarity is None else pair.similarity


def _worth_judging(pairing: Pairing, pairs: Sequence[Pair]) -> list[Pair]:
    """As the gate does: the most similar ones, and those of the others that name a value of the same property.

    Those that have become one count as one. What has no vector is worth it, too: a key or a property speaks for it.
    """
    standing: list[UUID] = []
    chosen = []
    for pair in pairs:
        stands = pairing.standing(pair.other)
        if stands not in standing and len(standing) < JUDGED and pair.similarity is not None:
            standing.append(stands)
        if stands in standing or pair.similarity is None or pairing.of_one_property(pair.one, pair.other):
            chosen.append(pair)
    return chosen


async def _pairing(tx: Transaction, run: Run, model: EmbedderIdentity, pairs: Sequence[Pair]) -> Pairing:
    """Read what judging these pairs takes."""
    guard = Guard(thresholds_for(model.model, model.dimension))
    named = {ident for pair in pairs for ident in (pair.one, pair.other)}
    steps = await tx.hot("merges_of_run", {**_run(tx, run), "ids": sorted(named)}) if named else []
    into: dict[UUID, UUID] = {row["target_id"]: row["other_id"] for row in steps}
    ids = sorted(named.union(into.values()))
    memories = await existing_memories(tx, ids)
    apart = await tx.hot("kept_apart", {"tenant_id": tx.tenant_id, "ids": ids}) if ids else []
    texts = {memories[ident].text for ident in into.values() if ident in memories}
    texts.update(_texts(guard, memories, pairs))
    guard = replace(guard, aliases=await read_aliases(tx, texts))
    return Pairing(tx, guard, model.model, memories, into, [(row["one"], row["other"]) for row in apart])


def _texts(guard: Guard, memories: Mapping[UUID, Memory], pairs: Iterable[Pair]) -> Iterable[str]:
    """The texts of those pairs that the guard is going to compare."""
    for pair in pairs:
        one, other = memories.get(pair.one), memories.get(pair.other)
        if one and other and not guard.is_far(one, other, pair.similarity):
            yield from (one.text, other.text)


async def _merge(tx: Transaction, run: Run, planned: Sequence[Planned]) -> Made:
    """Merge what is as it was when it was judged; what was changed meanwhile is left to the next run."""
    mergings: list[Merging] = [one.work for one in planned]
    await enter_scopes(tx, [merging.gone.user_id for merging in mergings])
    ids = sorted({ident for merging in mergings for ident in merging.versions})
    rows = await tx.hot("hold_versions", {"tenant_id": tx.tenant_id, "ids": ids})
    held = {(row["id"], row["version"]) for row in rows}
    changes: list[Planned] = []
    acts: dict[UUID, UUID] = {}
    for one, merging in zip(planned, mergings, strict=True):
        if not merging.versions.items() <= held:
            held -= {(one.target, merging.gone.version)}  # nothing else that rests on this is made either
            continue
        acts[one.target] = await _absorb(tx, run, merging)
        changes.append(one)
    return Made(changes, acts=acts)


async def _absorb(tx: Transaction, run: Run, merging: Merging) -> UUID:
    grounds = replace(merging.grounds, further={"cycle": run.cycle, "run": run.id})
    gone, stays = merging.gone, merging.stays
    absorbed = await absorb(tx, run.outbox, run.principal, gone, stays, grounds, None)
    await settle_reviews(tx, run.principal, gone.id, stays.id)
    return absorbed.act_id


def _run(tx: Transaction, run: Run) -> dict[str, Any]:
    return {"tenant_id": tx.tenant_id, "run_id": run.id, "rule": RULE}


MERGING: Final = Work(_plan, _merge, undo_memory_act)
