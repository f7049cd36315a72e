"""Clients that write while processes die, and remember every write that was acknowledged to them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from threading import Event
from time import monotonic
from typing import Any

import httpx

NAMES = (
    *("Ann Miller", "Bob Stone", "Carl Berg", "Dora Lind", "Emil Novak"),
    *("Fay Ortiz", "Gus Hale", "Ida Quist", "Jon Vance", "Kay Ruiz"),
)
"""Few names, so that all clients change the counts of the same entities and pairs."""

RARE_NAMES = tuple(
    f"{first} {last}"
    for first in ("Abel", "Bruno", "Clara", "Dario", "Elsa", "Frida", "Gerda", "Hugo", "Irma", "Jonas", "Karla", "Leo")
    for last in (
        "Adler",
        "Brandt",
        "Conti",
        "Dupont",
        "Eklund",
        "Fuchs",
        "Greco",
        "Huber",
        "Ivanov",
        "Jansen",
        "Keller",
    )
)
"""Many names, whose entities come and go with single memories."""

LABEL = "Attribute"
"""A label whose texts may change."""

PATIENCE_S = 90.0
"""Seconds that a client repeats one request; a stack that is started again takes 15 of them on a busy machine."""

_RETRY_S = 0.1

_DECLARED_AFTER = 15
"""Memories that a client stores before it declares an entity."""


@dataclass(slots=True)
class Written:
    """What must be there, going by the answers alone."""

    texts: dict[str, str] = field(default_factory=dict)
    """Text of each memory that was acknowledged and not deleted since."""
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    """The names in each of these texts."""
    edges: set[tuple[str, str]] = field(default_factory=set)
    """Source and target of each edge that was stored; it is gone once one of them is."""
    declared: set[str] = field(default_factory=set)
    """Names that were declared as entities."""
    retried: int = 0
    """Requests that got a 503 or no answer, and were sent again."""

    def merge(self, other: Written) -> None:
        """Take in what another client has written."""
        self.texts |= other.texts
        self.names |= other.names
        self.edges |= other.edges
        self.declared |= other.declared
        self.retried += other.retried

    def living_edges(self) -> set[tuple[str, str]]:
        """Edges whose both ends are still there."""
        return {(source, target) for source, target in self.edges if {source, target} <= self.texts.keys()}

    def pairs(self) -> Counter[tuple[str, ...]]:
        """How many memories name both of two entities."""
        return Counter(pair for names in self.names.values() for pair in combinations(sorted(names), 2))


class Client:
    """Stores, changes and deletes memories of its own, one request after the other, each with an idempotency key.

    A request that gets a 503 or whose connection breaks is repeated under its key, as a well-behaved caller does; any
    other refusal is a failure of the test.

    Args:
        api: Address of the API.
        token: Of a role that may write.
        name: Tells clients apart, in keys and texts.
        seed: Of this client's choices.
        pace: Seconds of thought between two requests.
    """

    def __init__(self, api: str, token: str, name: str, seed: str, *, pace: float) -> None:
        self.written = Written()
        self.stored = 0
        self._api = api
        self._token = token
        self._name = name
        self._seed = seed
        self._source = random.Random(seed)
        self._pace = pace
        self._number = 0
        self._tick = Event()

    def run(self, least: int, finishing: Event) -> None:
        """Go on until `least` memories are stored and `finishing` is set."""
        headers = {"Authorization": f"Bearer {self._token}"}
        with httpx.Client(base_url=self._api, headers=headers, timeout=30) as http:
            while self.stored < least or not finishing.is_set():
                self._act(http)
                if not self.written.declared and self.stored >= _DECLARED_AFTER:
                    self._declare(http)
                if self._pace:
                    self._tick.wait(self._pace)

    def _act(self, http: httpx.Client) -> None:
        kind = self._source.choices(("one", "batch", "change", "delete"), (55, 15, 20, 10))[0]
        mine = sorted(self.written.texts)
        if kind == "batch":
            self._store_batch(http)
        elif kind == "one" or not mine:
            self._store_one(http, mine)
        elif kind == "change":
            self._change(http, self._source.choice(mine))
        else:
            self._delete(http, self._source.choice(mine))

    def _declare(self, http: httpx.Client) -> None:
        """Declare an entity that others' memories may name already: they are linked to it, whichever comes first."""
        name = NAMES[int(self._name)]  # another one for each client: a name that two entities have stands for neither
        answer = self._send(http, "POST", "/v1/memory/entities", {"name": name, "entity_type": "person"})
        assert answer.status_code == 201, answer.text
        self.written.declared.add(name)

    def _store_one(self, http: httpx.Client, mine: list[str]) -> None:
        text, names = self._compose()
        draft: dict[str, Any] = {"text": text, "label": LABEL}
        targets = self._source.sample(mine, min(len(mine), self._source.randint(0, 2)))
        draft["edges"] = [{"type": "SUPPORTS", "to": target} for target in targets]
        answer = self._send(http, "POST", "/v1/memories", draft)
        assert answer.status_code == 201, answer.text
        ident = answer.json()["memory"]["id"]
        self._keep(ident, text, names)
        self.written.edges |= {(ident, target) for target in targets}

    def _store_batch(self, http: httpx.Client) -> None:
        composed = [self._compose() for _ in range(self._source.randint(5, 15))]
        items = [{"text": text, "label": LABEL} for text, _ in composed]
        answer = self._send(http, "POST", "/v1/memories/batch", {"items": items})
        assert answer.status_code == 200, answer.text
        results = answer.json()["results"]
        assert [result["status"] for result in results] == [201] * len(items), results
        for result, (text, names) in zip(results, composed, strict=True):
            self._keep(result["memory_id"], text, names)

    def _change(self, http: httpx.Client, ident: str) -> None:
        text, names = self._compose()
        answer = self._send(http, "PATCH", f"/v1/memories/{ident}", {"text": text})
        assert answer.status_code == 200, answer.text
        self.written.texts[ident], self.written.names[ident] = text, names

    def _delete(self, http: httpx.Client, ident: str) -> None:
        before = self.written.retried
        answer = self._send(http, "DELETE", f"/v1/memories/{ident}")
        # It may have been deleted by a try whose answer was lost.
        repeated = self.written.retried > before
        assert answer.status_code == 200 or (repeated and answer.status_code == 404), answer.text
        del self.written.texts[ident], self.written.names[ident]

    def _compose(self) -> tuple[str, frozenset[str]]:
        """A text that nobody else writes, with two or three names in it."""
        names = self._source.sample(NAMES, 2) + self._source.sample(RARE_NAMES, self._source.randint(0, 1))
        return f"entry {self._name}-{self._next()}: we saw {' with '.join(names)} at the harbour.", frozenset(names)

    def _keep(self, ident: str, text: str, names: frozenset[str]) -> None:
        self.written.texts[ident], self.written.names[ident] = text, names
        self.stored += 1

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _send(self, http: httpx.Client, method: str, path: str, body: object = None) -> httpx.Response:
        headers = {"Idempotency-Key": f"{self._seed}:{self._next()}"} if method == "POST" else {}
        deadline = monotonic() + PATIENCE_S
        while True:
            try:
                answer = http.request(method, path, json=body, headers=headers)
            except httpx.TransportError as error:
                failure = repr(error)
            else:
                if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    return answer
                failure = answer.text
            assert monotonic() < deadline, f"{method} {path} in vain for {PATIENCE_S} s: {failure}"
            self.written.retried += 1
            self._tick.wait(_RETRY_S)


class Load:
    """Clients at work. Ask for `written` once `finish` has returned."""

    def __init__(self, clients: Iterable[Client], least: int, pool: ThreadPoolExecutor) -> None:
        self.written = Written()
        self._clients = list(clients)
        self._finishing = Event()
        self._running: list[Future[None]] = [
            pool.submit(client.run, least, self._finishing) for client in self._clients
        ]

    @property
    def stored(self) -> int:
        """Memories that were acknowledged up to now."""
        return sum(client.stored for client in self._clients)

    @property
    def running(self) -> bool:
        """Whether a client is still at work."""
        self._raise_failures()
        return any(not future.done() for future in self._running)

    def finish(self) -> Written:
        """Let the clients come to their end, and give what all of them have written.

        Raises:
            AssertionError: A client was refused, or got no answer in time.
        """
        self.stop()
        for future, client in zip(self._running, self._clients, strict=True):
            future.result()
            self.written.merge(client.written)
        return self.written

    def stop(self) -> None:
        """Ask the clients to end once they have stored their least number."""
        self._finishing.set()

    def _raise_failures(self) -> None:
        for future in self._running:
            if future.done():
                future.result()


@contextmanager
def write(api: str, token: str, seed: int, *, clients: int = 4, least: int = 0, pace: float = 0.0) -> Iterator[Load]:
    """Have clients write while the block runs.

    Args:
        api: Address of the API.
        token: Of a role that may write.
        seed: Of all choices.
        clients: How many write side by side.
        least: Memories that each stores at least, however early it is told to finish.
        pace: Seconds of thought between two requests of one client.
    """
    writers = [Client(api, token, str(number), f"{seed}:{number}", pace=pace) for number in range(clients)]
    with ThreadPoolExecutor(clients) as pool:
        load = Load(writers, least, pool)
        try:
            yield load
        finally:
            load.stop()
