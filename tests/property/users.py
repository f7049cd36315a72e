"""What a tenant's users do in a history: each act takes small numbers, and finds out what they stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tests.property import drawing
from tests.property.tenants import USERS, Tenant

from memory_os.entities.model import EntityPatch
from memory_os.memories.model import MemoryPatch, NodeAddress
from memory_os.records.model import RecordLayer

_PATCHES = (
    MemoryPatch(status="archived"),
    MemoryPatch(status="active"),
    MemoryPatch(label="Event"),
    MemoryPatch(valid_from=datetime(2020, 1, 1, tzinfo=UTC)),
)


@dataclass(frozen=True, slots=True)
class Act:
    """The numbers of one act; each takes what it needs."""

    which: int = 0
    other: int = 0
    named: list[int] = field(default_factory=lambda: [0])
    spelling: str = "as it is"
    flag: bool = False


class Users:
    """The users of a tenant, and what they know of it.

    Args:
        tenant: Whose users.
        shared: The names that they use most, which come first among all names.
    """

    def __init__(self, tenant: Tenant, shared: tuple[str, ...]) -> None:
        self._tenant = tenant
        self._names = (*shared, *drawing.NAMES)
        self.memories: list[UUID] = []
        self._forgotten: list[UUID] = []
        self._declared: list[UUID] = []
        self._records: list[tuple[RecordLayer, UUID]] = []

    def do(self, action: str, act: Act) -> None:
        """Do what a theme names."""
        getattr(self, action)(act)

    # --- memories

    def store(self, act: Act) -> None:
        named = act.named * 2 if act.flag else act.named
        self._remember(self._tenant.store(self._text(named, act.spelling), USERS[act.other % 2]))

    def restore(self, act: Act) -> None:
        """Store a memory under the id of one that was deleted."""
        if self._forgotten:
            ident = pick(self._forgotten, act.which)
            self._remember(self._tenant.store(self._text(act.named, act.spelling), None, ident))

    def _remember(self, ident: UUID | None) -> None:
        if ident is not None:
            self.memories.append(ident)
            self._forgotten = [known for known in self._forgotten if known != ident]

    def rewrite(self, act: Act) -> None:
        self._change(act, MemoryPatch(text=self._text(act.named, act.spelling)))

    def change(self, act: Act) -> None:
        self._change(act, _PATCHES[act.other % len(_PATCHES)])

    def _change(self, act: Act, patch: MemoryPatch) -> None:
        if self.memories:
            self._tenant.mend()  # what can't be read can't be changed
            self._tenant.change(pick(self.memories, act.which), patch)

    def forget(self, act: Act) -> None:
        if self.memories:
            self._tenant.mend()
            ident = pick(self.memories, act.which)
            self._tenant.forget(ident)
            self.memories.remove(ident)
            self._forgotten.append(ident)

    # --- entities

    def declare(self, act: Act) -> None:
        first, *others = [self._name(some) for some in act.named]
        ident = self._tenant.declare(drawing.spelt(first, act.spelling), others)
        self._declared += [ident] if ident else []

    def rename(self, act: Act) -> None:
        if self._declared:
            named = drawing.spelt(self._name(act.named[0]), act.spelling)
            self._tenant.redeclare(pick(self._declared, act.which), EntityPatch(name=named))

    def realias(self, act: Act) -> None:
        if self._declared:
            aliases = [] if act.flag else [self._name(some) for some in act.named]
            self._tenant.redeclare(pick(self._declared, act.which), EntityPatch(aliases=aliases))

    def undeclare(self, act: Act) -> None:
        if self._declared:
            ident = pick(self._declared, act.which)
            if self._tenant.undeclare(ident):
                self._declared.remove(ident)

    def merge(self, act: Act) -> None:
        if len(self._declared) > 1:
            source = pick(self._declared, act.which)
            if self._tenant.merge(source, pick(self._declared, act.other)):
                self._declared.remove(source)

    def split(self, act: Act) -> None:
        if self._declared:
            ident = pick(self._declared, act.which)
            aliases = self._tenant.aliases(ident)
            made = self._tenant.split(ident, [pick(aliases, act.other)]) if aliases else None
            self._declared += [made] if made else []

    # --- edges, links, records

    def tie(self, act: Act) -> None:
        if not self.memories:
            return
        known = self._tenant.entities()
        ends = [NodeAddress(memory=pick(self.memories, act.which)), NodeAddress(memory=pick(self.memories, act.other))]
        if known and act.named[0] % 3:
            ends[1] = NodeAddress(entity=pick(known, act.other))
        if act.flag:
            ends.reverse()
        edge_type = drawing.EDGE_TYPES[act.named[-1] % len(drawing.EDGE_TYPES)]
        self._tenant.tie(edge_type, ends[0], ends[1], 1 / 3 if act.other % 2 else None)

    def untie(self, act: Act) -> None:
        if known := self._tenant.edges():
            self._tenant.untie(pick(known, act.which))

    def link(self, act: Act) -> None:
        layer = drawing.LAYERS[act.named[0] % len(drawing.LAYERS)]
        known = self._tenant.entities()
        records = [ident for kind, ident in self._records if kind == layer]
        targets = {"entity": known, "memory": self.memories}.get(layer, records)
        if known and targets:
            begin = datetime(2021, 1, 1, tzinfo=UTC) if act.flag else None
            self._tenant.link(pick(known, act.which), layer, pick(targets, act.other), (begin, None))

    def unlink(self, act: Act) -> None:
        if known := self._tenant.links():
            self._tenant.unlink(*pick(known, act.which))

    def close_link(self, act: Act) -> None:
        if known := self._tenant.links():
            self._tenant.close_link(*pick(known, act.which))

    def keep_record(self, act: Act) -> None:
        """Store a record, and link an entity to it."""
        layer = drawing.RECORD_LAYERS[act.other % len(drawing.RECORD_LAYERS)]
        if kept := self._tenant.keep(layer):
            self._records.append((layer, kept))
            if known := self._tenant.entities():
                self._tenant.link(pick(known, act.which), layer, kept, (None, None))

    def drop_record(self, act: Act) -> None:
        if self._records:
            gone = pick(self._records, act.which)
            self._tenant.drop_record(*gone)
            self._records.remove(gone)

    def _name(self, number: int) -> str:
        return self._names[number]

    def _text(self, named: list[int], spelling: str) -> str:
        return f"we saw {' with '.join(drawing.spelt(self._name(some), spelling) for some in named)} there."


def pick(known: list[Any], which: int) -> Any:
    """One of a list, whatever its length, counted from the last."""
    return known[(-1 - which) % len(known)]
