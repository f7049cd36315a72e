"""Products with a fault each, which the histories must find: a proof that finds nothing in these proves nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any
from unittest.mock import patch
from uuid import UUID

from tests.property import mortal_workers

from memory_os.domain.weights import co_occurrence_weight
from memory_os.graph.port import CoOccurrence, GraphBackend, GraphPatch
from memory_os.memories import changing
from memory_os.outbox.events import NewEvent
from memory_os.projection import projector
from memory_os.storage import database
from memory_os_workers import holding

Wrap = Callable[[GraphBackend], GraphBackend]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: functions that are replaced, or a backend that is put before the real one."""

    name: str
    patches: tuple[Callable[[], Any], ...] = ()
    wrap: Wrap | None = None

    def applied(self) -> ExitStack:
        """The product with this fault, for the length of a block."""
        stack = ExitStack()
        for make in self.patches:
            stack.enter_context(make())
        return stack


class _Before:
    """A backend before another one, which passes on what it does not change."""

    def __init__(self, inner: GraphBackend) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Incrementing(_Before):
    """Counts pairs in place: what a memory names together is added to what is there, however often it comes."""

    async def apply(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        keys = [(pair.a, pair.b) for pair in patch.co_occurrences]
        there = {(row.a, row.b): row.count for row in await self._inner.look_up(tenant_id, "co_occurrences", keys)}
        named: dict[str, list[str]] = {}
        for mention in patch.mentions:
            named.setdefault(mention.memory_id, []).append(mention.entity_id)
        come = Counter(pair for entities in named.values() for pair in combinations(sorted(entities), 2))
        counts = {key: there.get(key, 0) + come[key] for key in keys}
        added = [
            CoOccurrence(a, b, co_occurrence_weight(count), count) if count else CoOccurrence(a, b, 0.0, 0)
            for (a, b), count in counts.items()
        ]
        await self._inner.apply(tenant_id, token, replace(patch, co_occurrences=added))


class Fenceless(_Before):
    """Lets every write pass: it names the token that the fence holds, whatever the writer's is."""

    tokens: dict[UUID, str] = {}  # noqa: RUF012 - of all wrappers: each call has one of its own

    async def take_fence(self, tenant_id: UUID, token: str) -> str:
        self.tokens[tenant_id] = token
        return await self._inner.take_fence(tenant_id, token)

    async def apply(self, tenant_id: UUID, token: str, patch: GraphPatch) -> None:
        await self._inner.apply(tenant_id, self.tokens.get(tenant_id, token), patch)


async def _nothing(*_: Any, **__: Any) -> None:
    return


async def _no_rows(*_: Any, **__: Any) -> list[Any]:
    return []


async def _yes(*_: Any, **__: Any) -> bool:
    return True


def _statement(name: str, old: str, new: str) -> Callable[[], Any]:
    """A hot statement with another text."""
    original = database.hot_statement
    text = original(name).decode()
    assert old in text, f"{name}.sql does not hold what this mutant changes"
    changed = text.replace(old, new).encode()
    return partial(patch.object, database, "hot_statement", lambda asked: changed if asked == name else original(asked))


async def _pruned_first(backend: GraphBackend, tenant_id: UUID, whole: GraphPatch) -> list[GraphPatch]:
    """The steps of a patch with the mentions pruned before the pairs are set."""
    entities, mentions, pairs, pruned, declared = await _split(backend, tenant_id, whole)
    return [entities, mentions, pruned, pairs, declared]


_split = mortal_workers.split_by_statement

MUTANTS = (
    Mutant("increments in place", wrap=Incrementing),
    Mutant("no fence", wrap=Fenceless),
    Mutant("no tombstones", (partial(patch.object, projector, "require_tombstones", _nothing),)),
    Mutant("derives without the tenant", (partial(patch.object, projector, "hold_tenant", _nothing),)),
    Mutant("takes any graph for the tenant's", (partial(patch.object, holding, "recognise", _yes),)),
    Mutant(
        "prunes mentions before pairs", (partial(patch.object, mortal_workers, "split_by_statement", _pruned_first),)
    ),
    Mutant(
        "forgets what was counted and never written",
        (
            partial(patch.object, changing, "_mentioned", _no_rows),
            partial(patch.object, projector, "note_mentioned", _nothing),
        ),
    ),
    Mutant("edges without their ends", (partial(patch.object, projector, "_add_endpoints", lambda *_: None),)),
    Mutant("keeps edges of a node that went", (partial(patch.object, changing, "relations_beside", _no_rows),)),
    Mutant("keeps what nothing holds", (partial(patch.object, changing, "reconsider", lambda _: list[NewEvent]()),)),
    Mutant("leaves homonyms to nobody", (_statement("extract_again", "UNION SELECT memory_id FROM freed", ""),)),
)
