"""What the dedup gate adds to a write at so many memories in the writer's scope, and what one scope costs others.

Writes with the gate and without it (`dedup: off`) take turns in the same run, so that both meet the same machine. Then
sixteen clients write one fact in one scope, sixteen write it in scopes of their own, and one client measures its writes
in another scope while eight keep the first one busy. Embedding is left out (hashed words).
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import time
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Self

import psycopg
from corpus import WORDS, names
from stack import Stores, Wire, parser, quantile, report, service, stores

from memory_os.domain.ids import new_id

CLIENTS = 16
BUSY = 8


NAMES = names(2000)


def count(outcomes: list[str]) -> dict[str, int]:
    """How often each came."""
    return {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}


VOCABULARY = sorted(
    {
        word
        for line in files("memory_os.domain.gate").joinpath("words", "wordnet.txt").read_text("utf-8").splitlines()
        if not line.startswith(("#", "["))
        for word in line.split()
    }
)
"""Some thousand English words."""


def sentence(number: int) -> str:
    """A note of its own, unlike most others."""
    source = random.Random(number)
    return f"{source.choice(NAMES)} {' '.join(source.choices(VOCABULARY, k=9))} {source.choice(NAMES)}."


def lookalike(number: int) -> str:
    """A note of the same few words as all others of its kind: the guard has to compare it with several of them."""
    source = random.Random(number)
    chosen = [source.choice(NAMES) for _ in range(3)]
    return f"{chosen[0]} met {chosen[1]}, {' '.join(source.choices(WORDS, k=8))} with {chosen[2]}."


class Writer:
    """One client that writes as one user."""

    def __init__(self, address: str, token: str, user: str) -> None:
        self._wire = Wire(address, token)
        self._user = user

    async def __aenter__(self) -> Self:
        await self._wire.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._wire.close()

    async def write(self, text: str, dedup: str) -> tuple[float, str]:
        """Store one memory; gives milliseconds and the outcome."""
        body = {"text": text, "label": "Attribute", "user_id": self._user, "dedup": dedup}
        started = time.perf_counter()
        status, answer = await self._wire.post("/v1/memories", json.dumps(body).encode())
        took = (time.perf_counter() - started) * 1000
        assert status in (200, 201), answer
        return took, json.loads(answer)["outcome"]


async def fill(address: str, on: Stores, count: int) -> None:
    """Put memories into the scope through the API, in batches."""
    wire = Wire(address, on.token)
    await wire.open()
    for start in range(0, count, 500):
        items = [
            {"text": sentence(number), "label": "Attribute", "dedup": "off"}
            for number in range(start, min(start + 500, count))
        ]
        status, answer = await wire.post("/v1/memories/batch", json.dumps({"items": items}).encode())
        assert status == 200, answer
    wire.close()
    with psycopg.connect(on.owner_url, autocommit=True) as connection:
        connection.execute("UPDATE memory_sketches SET scope = 'mara'")
        connection.execute("UPDATE memories SET user_id = 'mara'")
        connection.execute("VACUUM ANALYZE memories, memory_sketches, memory_embeddings")


async def take_turns(
    address: str, on: Stores, writes: int, make: Callable[[int], str], first: int = 10_000_000
) -> dict[str, Any]:
    """Writes with and without the gate in one scope, one after the other."""
    times: dict[str, list[float]] = {"gate": [], "off": []}
    outcomes: list[str] = []
    async with Writer(address, on.token, "mara") as writer:
        for number in range(writes):
            for dedup in ("gate", "off"):
                took, outcome = await writer.write(make(first + number * 2 + (dedup == "off")), dedup)
                times[dedup].append(took)
                outcomes.append(outcome)
    p50 = {dedup: statistics.median(some) for dedup, some in times.items()}
    p95 = {dedup: quantile(some, 0.95) for dedup, some in times.items()}
    return {
        "p50_ms": p50,
        "p95_ms": p95,
        "added_p50_ms": round(p50["gate"] - p50["off"], 2),
        "outcomes": count(outcomes),
    }


async def together(address: str, on: Stores, users: list[str], texts: list[str]) -> dict[str, Any]:
    """One write of each user at the same moment."""
    writers = [Writer(address, on.token, user) for user in users]
    for writer in writers:
        await writer.__aenter__()
    started = time.perf_counter()
    answers = await asyncio.gather(*(writer.write(text, "gate") for writer, text in zip(writers, texts, strict=True)))
    took = (time.perf_counter() - started) * 1000
    for writer in writers:
        await writer.__aexit__()
    outcomes = [outcome for _, outcome in answers]
    return {
        "all_ms": round(took, 1),
        "p50_ms": round(statistics.median(each for each, _ in answers), 1),
        "outcomes": count(outcomes),
    }


async def beside(address: str, on: Stores, seconds: float) -> dict[str, Any]:
    """Writes of one user, alone, beside others in one scope of theirs, and beside others in scopes of their own."""
    found: dict[str, float] = {}
    for name, crowd in (
        ("alone", []),
        ("beside_one_busy_scope", ["mara"] * BUSY),
        ("beside_busy_scopes", [f"busy-{number}" for number in range(BUSY)]),
    ):
        stop = asyncio.Event()

        async def keep_writing(user: str, seed: int, until: asyncio.Event = stop) -> None:
            async with Writer(address, on.token, user) as writer:
                while not until.is_set():
                    seed += 1
                    await writer.write(sentence(seed), "gate")

        tasks = [
            asyncio.create_task(keep_writing(user, 20_000_000 + index * 1_000_000)) for index, user in enumerate(crowd)
        ]
        times = []
        end = time.perf_counter() + seconds
        async with Writer(address, on.token, "noor") as writer:
            while time.perf_counter() < end:
                times.append((await writer.write(sentence(random.getrandbits(40)), "gate"))[0])
        stop.set()
        await asyncio.gather(*tasks)
        found[f"{name}_p50_ms"] = round(statistics.median(times), 2)
    return found


async def run(address: str, on: Stores, memories: int, writes: int) -> dict[str, Any]:
    """Measure everything."""
    await fill(address, on, memories)
    await take_turns(address, on, 50, sentence, 30_000_000)  # statements are prepared at their fifth use
    turns = await take_turns(address, on, writes, sentence)
    await take_turns(address, on, writes, lookalike, 40_000_000)
    alike = await take_turns(address, on, writes, lookalike)
    fact = "Mara prefers direct feedback in writing"
    same = [f"{fact}{'.' * (number % 2)}{' ' * (number % 3)}" for number in range(CLIENTS)]
    return {
        "memories_in_scope": memories,
        "unlike_all_others": turns,
        "like_many_others": alike,
        "one_fact_one_scope": await together(address, on, ["lena"] * CLIENTS, same),
        "one_fact_many_scopes": await together(
            address, on, [f"user-{new_id()}" for _ in range(CLIENTS)], [fact] * CLIENTS
        ),
        **await beside(address, on, 4.0),
    }


def main() -> None:
    """Run it."""
    options = parser(__doc__ or "", "python benchmarks/gated_writes.py --memories 10000")
    options.add_argument("--memories", type=int, default=10_000, help="memories in the scope")
    options.add_argument("--writes", type=int, default=300, help="writes of each kind")
    given = options.parse_args()
    with stores() as on, service(on) as address:
        report("gated_writes", asyncio.run(run(address, on, given.memories, given.writes)))


if __name__ == "__main__":
    main()
