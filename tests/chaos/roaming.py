"""Clients that use all of the API at random, and what must be there going by their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from typing import Any

import httpx
from tests.chaos.observing import check_names, differences
from tests.chaos.writing import NAMES, Client, Written

from memory_os.graph.port import GraphDump

ALIASES = NAMES[6:]
"""The alias that each client gives to its entity: a name that texts use, too."""

_KINDS = {
    "one": 28,
    "batch": 8,
    "change": 22,
    "archive": 8,
    "delete": 14,
    "tie": 10,
    "untie": 6,
    "alias": 4,
}
"""How often a client does what."""

Claim = tuple[str, str, str]
"""Type, source and target of an edge."""


@dataclass(slots=True)
class Told(Written):
    """What must be there, going by the answers alone; `names` are those that texts use, aliases among them."""

    archived: set[str] = field(default_factory=set)
    """Memories whose status is `archived`, of all that were acknowledged."""
    claims: dict[Claim, str] = field(default_factory=dict)
    """Edges that were stored by themselves, with their ids."""
    aliases: dict[str, str] = field(default_factory=dict)
    """Aliases at present, with the names that they stand for."""

    def merge(self, other: Written) -> None:
        """Take in what another client was told."""
        Written.merge(self, other)
        assert isinstance(other, Told)
        self.archived |= other.archived
        self.claims |= other.claims
        self.aliases |= other.aliases

    def resolved(self) -> Written:
        """The same with each name replaced by the one it stands for."""
        names = {
            ident: frozenset(self.aliases.get(name, name) for name in found) for ident, found in self.names.items()
        }
        return Written(self.texts, names, self.edges, self.declared, self.retried)

    def living_claims(self) -> set[Claim]:
        """Edges whose both ends are still there; entities always are."""
        claims = {("SUPPORTS", source, target) for source, target in self.living_edges()}
        return claims | {claim for claim in self.claims if self._lives(claim)}

    def _lives(self, claim: Claim) -> bool:
        edge_type, source, target = claim
        return source in self.texts and (edge_type == "ABOUT" or target in self.texts)


class Roamer(Client):
    """A client that also archives, ties and unties, and gives its entity an alias and takes it back.

    Args:
        api: Address of the API.
        token: Of a role that may write.
        name: A number that tells clients apart.
        seed: Of this client's choices.
        pace: Seconds of thought between two requests.
    """

    def __init__(self, api: str, token: str, name: str, seed: str, *, pace: float) -> None:
        super().__init__(api, token, name, seed, pace=pace)
        self.written: Told = Told()
        self._entity: str | None = None

    def run(self, least: int, finishing: Event) -> None:
        """Go on until `least` memories are stored and `finishing` is set."""
        try:
            super().run(least, finishing)
        except AssertionError as error:
            raise AssertionError(f"client {self._name}: {error}") from error

    def _act(self, http: httpx.Client) -> None:
        kind = self._source.choices([*_KINDS], [*_KINDS.values()])[0]
        mine = sorted(self.written.texts)
        if kind == "batch":
            self._store_batch(http)
        elif kind == "untie" and self.written.claims:
            self._untie(http)
        elif kind == "alias" and self._entity is not None:
            self._alias(http, self._entity)
        elif kind == "tie" and len(mine) > 1:
            self._tie(http, mine)
        elif kind == "change" and mine:
            self._change(http, self._source.choice(mine))
        elif kind == "archive" and mine:
            self._archive(http, self._source.choice(mine))
        elif kind == "delete" and mine:
            self._delete(http, self._source.choice(mine))
        else:
            self._store_one(http, mine)

    def _declare(self, http: httpx.Client) -> None:
        name = NAMES[int(self._name)]
        answer = self._send(http, "POST", "/v1/memory/entities", {"name": name, "entity_type": "person"})
        assert answer.status_code == 201, answer.text
        self._entity = answer.json()["entity"]["id"]
        self.written.declared.add(name)

    def _alias(self, http: httpx.Client, entity: str) -> None:
        alias = ALIASES[int(self._name)]
        taken = alias in self.written.aliases
        answer = self._send(http, "PATCH", f"/v1/memory/entities/{entity}", {"aliases": [] if taken else [alias]})
        assert answer.status_code == 200, answer.text
        if taken:
            del self.written.aliases[alias]
        else:
            self.written.aliases[alias] = NAMES[int(self._name)]

    def _archive(self, http: httpx.Client, ident: str) -> None:
        archived = ident in self.written.archived
        answer = self._send(http, "PATCH", f"/v1/memories/{ident}", {"status": "active" if archived else "archived"})
        assert answer.status_code == 200, answer.text
        self.written.archived ^= {ident}

    def _tie(self, http: httpx.Client, mine: list[str]) -> None:
        edge_type = self._source.choice(("PART_OF", "REQUIRES", "ABOUT") if self._entity else ("PART_OF", "REQUIRES"))
        source, target = self._source.sample(mine, 2)
        to = {"memory": target}
        if edge_type == "ABOUT":
            assert self._entity is not None
            target, to = self._entity, {"entity": self._entity}
        body: dict[str, Any] = {"type": edge_type, "from": {"memory": source}, "to": to}
        answer = self._send(http, "POST", "/v1/edges", body)
        assert answer.status_code in (200, 201), answer.text
        self.written.claims[edge_type, source, target] = answer.json()["edge"]["id"]

    def _untie(self, http: httpx.Client) -> None:
        claim = self._source.choice(sorted(self.written.claims))
        lived, before = claim in self.written.living_claims(), self.written.retried
        answer = self._send(http, "DELETE", f"/v1/edges/{self.written.claims[claim]}")
        # It has gone with one of its ends, or by a try whose answer was lost.
        absent = not lived or self.written.retried > before
        assert answer.status_code == 200 or (absent and answer.status_code == 404), answer.text
        del self.written.claims[claim]


def check_told(graph: GraphDump, told: Told) -> None:
    """Hold a graph against what the clients were told: all of it, with statuses and the types of edges."""
    check_names(graph, told.resolved())
    claims = {(edge.type, edge.source.id, edge.target.id) for edge in graph.edges.values()}
    wrong = {"too many": claims - told.living_claims(), "missing": told.living_claims() - claims}
    assert not any(wrong.values()), wrong
    statuses = {ident: "archived" if ident in told.archived else "active" for ident in told.texts}
    assert differences({ident: node.status for ident, node in graph.memories.items()}, statuses) == []
