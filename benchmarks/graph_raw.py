"""A contender of the graph benchmarks: plain UNWIND MERGE of finished rows into FalkorDB, and nothing else.

The rows are those of a graph that the workers have made, with all their properties. Indexes are there beforehand; what
is written in the clock is one statement after the other, as fast as the client goes.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import falkordb
from gate import wait_for_start
from stack import Stores

from memory_os.graph.port import GraphDump

BATCH = 1000
"""Rows a statement: 100 are slower (see `--batch`)."""

Part = tuple[str, list[dict[str, Any]]]

_MEMORY = ("label", "status", "version", "valid_from", "valid_to", "user_id")
_ENTITY = ("name", "type", "strength", "declared")


def _set(names: Iterable[str]) -> str:
    return ", ".join(f"n.{name} = r.{name}" for name in names)


_STATEMENTS = (
    f"UNWIND $rows AS r MERGE (n:Memory {{id: r.id}}) SET {_set(_MEMORY)}",
    f"UNWIND $rows AS r MERGE (n:Entity {{id: r.id}}) SET {_set(_ENTITY)}",
    (
        "UNWIND $rows AS r MATCH (a:Memory {id: r.a}) MATCH (b:Entity {id: r.b}) MERGE (a)-[e:MENTIONS]->(b) "
        "SET e.weight = r.w"
    ),
    (
        "UNWIND $rows AS r MATCH (a:Entity {id: r.a}) MATCH (b:Entity {id: r.b}) MERGE (a)-[e:CO_OCCURS]->(b) "
        "SET e.weight = r.w, e.count = r.n"
    ),
)


def parts(graph: GraphDump) -> list[Part]:
    """The statements of a graph and their rows, in the order in which they can be written."""
    memories = [{name: getattr(node, name) for name in ("id", *_MEMORY)} for node in graph.memories.values()]
    entities = [{name: getattr(node, name) for name in ("id", *_ENTITY)} for node in graph.entities.values()]
    mentions = [{"a": a, "b": b, "w": weight} for (a, b), weight in graph.mentions.items()]
    pairs = [{"a": a, "b": b, "w": weight, "n": count} for (a, b), (weight, count) in graph.co_occurrences.items()]
    return list(zip(_STATEMENTS, (memories, entities, mentions, pairs), strict=True))


def count_rows(graphs: Iterable[GraphDump]) -> dict[str, int]:
    """Nodes and edges of graphs."""
    made = list(graphs)
    return {
        "nodes": sum(len(graph.memories) + len(graph.entities) for graph in made),
        "edges": sum(len(graph.mentions) + len(graph.co_occurrences) for graph in made),
    }


def connect(environment: dict[str, str]) -> falkordb.FalkorDB:
    """A plain client."""
    return falkordb.FalkorDB(
        environment["FALKOR_HOST"], int(environment["FALKOR_PORT"]), password=environment["FALKOR_PASSWORD"]
    )


def prepare(client: falkordb.FalkorDB, name: str) -> falkordb.Graph:
    """An empty graph with its indexes."""
    target = client.select_graph(name)
    for label in ("Memory", "Entity"):
        target.query(f"CREATE INDEX FOR (n:{label}) ON (n.id)")
    return target


def write(target: falkordb.Graph, wanted: Iterable[Part], batch: int = BATCH) -> None:
    """Send everything."""
    for text, rows in wanted:
        for start in range(0, len(rows), batch):
            target.query(text, {"rows": rows[start : start + batch]})


def drop_raw(on: Stores, graphs: int) -> int:
    """Drop the graphs that the contenders wrote; gives how many edges there were."""
    client, edges = connect(on.environment()), 0
    for number in range(graphs):
        target = client.select_graph(f"raw{number}")
        edges += int(target.query("MATCH ()-[e]->() RETURN count(e)").result_set[0][0])
        target.delete()
    return edges


def load_once(on: Stores, graph: GraphDump, name: str) -> float:
    """Seconds that one client takes for a whole graph; it is dropped again."""
    target, wanted = prepare(connect(on.environment()), name), parts(graph)
    started = time.perf_counter()
    write(target, wanted)
    seconds = time.perf_counter() - started
    target.delete()
    return seconds


def main() -> None:
    """Write the graphs of one process."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("dumps", type=Path, help="pickled list of graphs")
    options.add_argument("--share", type=int, default=0, help="which of the processes this is")
    options.add_argument("--of", type=int, default=1, help="how many there are")
    options.add_argument("--batch", type=int, default=BATCH)
    given = options.parse_args()
    graphs: list[GraphDump] = pickle.loads(given.dumps.read_bytes())  # noqa: S301 - written by the same benchmark
    client = connect(dict(os.environ))
    mine = [
        (prepare(client, f"raw{number}"), parts(graph))
        for number, graph in enumerate(graphs)
        if number % given.of == given.share
    ]
    wait_for_start()
    before = time.process_time()
    for target, wanted in mine:
        write(target, wanted, given.batch)
    given.dumps.with_suffix(f".{given.share}.cpu").write_text(str(time.process_time() - before))


if __name__ == "__main__":
    main()
