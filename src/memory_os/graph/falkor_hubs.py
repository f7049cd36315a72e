"""Which nodes were hubs just now: looking at a hub of 25,000 edges only to pass it over takes the server 0.3 ms.

The same popular entities are met by walk after walk. What is remembered is only that a node has more mentions or
co-occurrences than are followed, and only for a short while: one that is a hub no longer is followed again after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final
from uuid import UUID

REMEMBERED_S: Final = 60.0
"""Seconds that a hub is taken for one without another look."""

MOST: Final = 50_000
"""Hubs of all tenants that a process remembers, some 10 MB."""


class KnownHubs:
    """Hubs by tenant, family of edges and id.

    Args:
        clock: Seconds of a steady clock.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until: dict[tuple[UUID, str, str], float] = {}

    def remember(self, tenant_id: UUID, hubs: Iterable[tuple[str, str]]) -> None:
        """Take these nodes for hubs for a while, each of a family."""
        if len(self._until) >= MOST:
            self._until.clear()
        until = self._clock() + REMEMBERED_S
        for family, ident in hubs:
            self._until[tenant_id, family, ident] = until

    def among(self, tenant_id: UUID, family: str, ids: Iterable[str]) -> set[str]:
        """Those of the nodes that are known as hubs."""
        now = self._clock()
        return {ident for ident in ids if self._until.get((tenant_id, family, ident), 0.0) > now}
