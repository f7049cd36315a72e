"""What only one user of a world may see: a row in every table that records leave rows in, with a word of its own.

Around it lies what everybody may see: the other ends of its edges and links, the names beside its names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import psycopg
from psycopg.types.json import Jsonb
from tests.security.cycle_rows import store_action, store_archived_edge, store_candidate, store_profile, store_run
from tests.security.provenances import insert_row
from tests.security.worlds import World, send

SECRET = "zquokka"
"""A word that only hidden records hold."""


@dataclass(frozen=True)
class Hidden:
    """Ids of what only the user of the world may see, by kind."""

    ids: Mapping[str, str]


async def hide_records(client: httpx.AsyncClient, world: World) -> Hidden:
    """Store hidden records through the API, and what they leave elsewhere; the graph is for the caller to project."""
    few = {"visibility": "restricted", "readers": {"users": [world.user], "groups": [f"group {world.mark}"]}}
    ids: dict[str, str] = dict(world.hidden)

    async def store(path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return await send(client, world, "POST", path, dict(body))

    text = f"Walter {SECRET.capitalize()} and Ada Lovelace sold the pizza oven to Mary {SECRET.capitalize()}."
    said = {"text": text, "label": "Event", "title": SECRET, "tags": [SECRET], "dedup": "off"}
    ids["memory"] = (await store("/v1/memories", {**said, **few}))["memory"]["id"]
    entity = {"name": f"{SECRET} kiln", "entity_type": SECRET, "aliases": [f"old {SECRET}"], "summary": SECRET}
    ids["entity"] = (await store("/v1/memory/entities", {**entity, **few}))["entity"]["id"]
    for kind in ("observation", "procedure", "outcome"):
        ids[kind] = (await store(f"/v1/memory/{kind}s", {"title": SECRET, **few}))[kind]["id"]
        link = {"layer": kind, "target_id": ids[kind], "relationship": SECRET}
        ids[f"link to {kind}"] = (await _link(store, world.ids["entity"], link))["id"]
    for start, layer, target in (
        (world.ids["entity"], "memory", ids["memory"]),
        (world.ids["entity"], "entity", ids["entity"]),
        (ids["entity"], "memory", world.ids["memory"]),
    ):
        link = {"layer": layer, "target_id": target, "relationship": SECRET}
        ids[f"link of {start[:4]} to {layer}"] = (await _link(store, start, link))["id"]
    for source, target in (
        ({"memory": ids["memory"]}, {"memory": world.ids["memory"]}),
        ({"memory": world.ids["spare"]}, {"entity": ids["entity"]}),
    ):
        edge = await store(
            "/v1/edges", {"type": "ABOUT" if "entity" in target else "SUPPORTS", "from": source, "to": target}
        )
        ids[f"edge to {next(iter(target))}"] = edge["edge"]["id"]
    newer = {"text": f"The oven needs {SECRET}."}
    ids["newer"] = (await store(f"/v1/memories/{world.ids['older']}/supersede", newer))["memory"]["id"]
    await send(client, world, "PATCH", f"/v1/memories/{ids['newer']}", few)  # everybody saw it; by now few may
    with psycopg.connect(world.tenant.owner_url) as connection:
        _store_rest(connection, world, ids)
    return Hidden(ids)


async def _link(store: Any, entity: str, link: Mapping[str, Any]) -> dict[str, Any]:
    return dict((await store(f"/v1/memory/entities/{entity}/links", link))["link"])


def _store_rest(connection: psycopg.Connection[Any], world: World, ids: dict[str, str]) -> None:
    """What the API leaves only later, or through the worker."""
    tenant_id, memory, source = world.tenant.tenant_id, ids["memory"], ids["source"]
    actor = {"role": "writer", "acting_user": SECRET}
    ends = {"memory_id": memory, "source_id": world.ids["source"]}
    ids["evidence of memory"] = insert_row(connection, world, "evidence", **ends, support="states", **actor)
    by = {"proposed_role": "reader", "reason": SECRET, "kind": "dispute", "memory_version": 1}
    ids["correction of memory"] = insert_row(connection, world, "corrections", memory_id=memory, source_id=source, **by)
    edges = {"hidden": ids["edge to memory"], "shown": world.ids["edge"]}
    ids["retrieval"] = _store_retrieval(connection, world, world.user, memory, edges["hidden"])
    _store_retrieval(connection, world, None, world.ids["memory"], edges["shown"])  # what everybody without a user sees
    pair = sorted((world.ids["entity"], ids["entity"]))
    connection.execute("INSERT INTO entity_pairs VALUES (%s, %s, %s, 1)", (tenant_id, *map(UUID, pair)))
    ids["review of memory"] = insert_row(
        connection,
        world,
        "memory_reviews",
        memory_id=memory,
        other_id=world.ids["memory"],
        kind="duplicate",
        tier="older",
        rule=SECRET,
    )
    _store_of_cycles(connection, world, ids)
    ids["entity act"] = insert_row(
        connection, world, "entity_acts", entity_id=ids["entity"], kind="split", role="writer", user_id=SECRET
    )


def _store_of_cycles(connection: psycopg.Connection[Any], world: World, ids: dict[str, str]) -> None:
    """What cycles did to a hidden memory, and what they made of it."""
    run = store_run(connection, world, status="done")
    store_action(connection, world, run, ids["memory"], mark="state")
    ids["archived edge"] = store_archived_edge(connection, world, ids["memory"], world.ids["memory"])
    few = {"visibility": "restricted", "reader_users": [world.user], "reader_groups": [f"group {world.mark}"]}
    ids["candidate"] = store_candidate(connection, world, ids["memory"], mark=SECRET, **few)
    connection.execute("DELETE FROM profiles WHERE user_id = %s", (world.user,))
    ids["profile"] = store_profile(connection, world, world.user, mark=SECRET)


def _store_retrieval(
    connection: psycopg.Connection[Any], world: World, user: str | None, memory: str, edge: str
) -> str:
    """A retrieval that handed a memory out, with all that it leaves, which gives its id."""
    asked = {"user_id": user, "query": SECRET if user else "oven", "graph_state": "current", "no_match": False}
    marks = {
        "arms": Jsonb({}),
        "bounds": Jsonb({}),
        "timings_ms": Jsonb({}),
        "items": 1,
        "omitted": 0,
        "pack_tokens": 1,
    }
    ident = insert_row(connection, world, "retrievals", **asked, **marks)
    key: tuple[object, ...] = (world.tenant.tenant_id, UUID(ident))
    connection.execute(
        "INSERT INTO retrieval_items (tenant_id, retrieval_id, position, record_type, in_pack, score, record_id) "
        "VALUES (%s, %s, 1, 'memory', true, 1, %s)",
        (*key, UUID(memory)),
    )
    connection.execute(
        "INSERT INTO retrieval_feedback (tenant_id, retrieval_id, verdict, record_id, user_id) "
        "VALUES (%s, %s, 'wrong', %s, %s)",
        (*key, UUID(memory), user),
    )
    connection.execute(
        "INSERT INTO retrieval_edges (tenant_id, retrieval_id, record_type, state, record_id, edge_id, reason) "
        "VALUES (%s, %s, 'memory', 'skipped', %s, %s, %s)",
        (*key, UUID(memory), UUID(edge), asked["query"]),
    )
    connection.execute(
        "INSERT INTO edge_reinforcements (tenant_id, retrieval_id, edge_id, period) VALUES (%s, %s, %s, %s)",
        (*key, UUID(edge), asked["query"]),
    )
    return ident
