"""Where the records of a world come from and what became of them: a row in each table of provenance, with its mark.

Put straight into the database, past the API: the tests of every route bring what the API itself would store.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from tests.security.worlds import World

Connection = psycopg.Connection[Any]
Row = dict[str, object]


def store_provenances(connection: Connection, world: World) -> None:
    """Sources with passages, evidence, corrections, an act on an entity and an erasure; hidden ones beside them."""
    ids, hidden = world.ids, world.hidden
    everybody: Row = {"user_id": world.user, "reader_users": [world.user], "reader_groups": [f"group {world.mark}"]}
    few = {**everybody, "visibility": "restricted"}
    everybody["visibility"] = "tenant"
    for found, memory, readers in ((ids, ids["memory"], everybody), (hidden, ids["hidden_memory"], few)):
        found["source"] = _store_source(connection, world, readers)
        found["passage"] = _store_passage(connection, world, found["source"])
        found["evidence"] = _store_evidence(connection, world, memory, found["source"], found["passage"])
        found["correction"] = _store_correction(connection, world, memory, source_id=found["source"])
    # A memory that all may read can rest on a source that few may read: this support is theirs alone.
    _store_evidence(connection, world, ids["memory"], hidden["source"], hidden["passage"])
    decided = {"status": "rejected", "decided_at": datetime.now(UTC), "decided_role": "reviewer"}
    words = {"decided_user": world.mark, "decision_reason": world.mark}
    _store_correction(connection, world, ids["memory"], **decided, **words)
    # For the calls that end what they are made for.
    ids["spare_source"], hidden["spare_source"] = _store_source(connection, world, everybody), hidden["source"]
    ids["doubted"], hidden["doubted"] = _store_correction(connection, world, ids["doubtful"]), hidden["correction"]
    ids["rejected"], hidden["rejected"] = _store_correction(connection, world, ids["spare"]), hidden["correction"]
    _store_acts(connection, world)


def _actor(world: World) -> Row:
    return {"token_id": uuid4(), "role": "writer", "acting_user": world.mark, "request_id": world.mark}


def _store_source(connection: Connection, world: World, readers: Row) -> str:
    mark = world.mark
    told = {"title": f"Letter {mark}", "uri": f"https://example.org/{mark}", "author": mark}
    return insert_row(connection, world, "sources", kind="document", **told, metadata=Jsonb({mark: mark}), **readers)


def _store_passage(connection: Connection, world: World, source: str) -> str:
    mark = world.mark
    text = f"The oven {mark} needs wood."
    written = {"text": text, "search": text, "locator": Jsonb({"page": mark})}
    passage = insert_row(connection, world, "passages", source_id=source, ordinal=0, **written)
    connection.execute(
        "INSERT INTO passage_embeddings (tenant_id, passage_id, source_id, model, dimension, embedding) "
        "VALUES (%s, %s, %s, 'tests', 3, '[1,0,0]')",
        (world.tenant.tenant_id, UUID(passage), UUID(source)),
    )
    connection.execute(
        "INSERT INTO token_vectors (tenant_id, record_id, passage_id, model, digest, vectors) "
        "VALUES (%s, %s, %s, 'tests', sha256(convert_to(%s, 'UTF8')), %s)",
        (world.tenant.tenant_id, UUID(passage), UUID(passage), text, mark.encode()),
    )
    return passage


def _store_evidence(connection: Connection, world: World, memory: str, source: str, passage: str) -> str:
    ends = {"memory_id": memory, "source_id": source, "passage_id": passage}
    return insert_row(
        connection, world, "evidence", **ends, support="states", quote_start=0, quote_end=3, **_actor(world)
    )


def _store_correction(connection: Connection, world: World, memory: str, **decided: object) -> str:
    mark = world.mark
    told = {"kind": "replace_text", "proposal": Jsonb({"text": f"The oven {mark} needs gas."}), "reason": mark}
    by = {"proposed_role": "reader", "proposed_user": world.user, "request_id": mark}
    return insert_row(connection, world, "corrections", memory_id=memory, memory_version=1, **told, **by, **decided)


def _store_acts(connection: Connection, world: World) -> None:
    mark = world.mark
    by = {"role": "writer", "user_id": mark, "request_id": mark}
    what = {"kind": "split", "detail": Jsonb({mark: mark}), "before": Jsonb({mark: mark})}
    for entity in (world.ids["entity"], world.hidden["entity"]):
        insert_row(connection, world, "entity_acts", entity_id=entity, other_id=world.ids["twin"], **what, **by)
    places = Jsonb([{"place": mark, "rows": 1}])
    erased = {"subject_type": "user", "subject": mark, "record_ids": [uuid4()], "places": places}
    world.ids["erasure"] = insert_row(connection, world, "erasures", **erased, **_actor(world))


def insert_row(connection: Connection, world: World, table: str, **values: object) -> str:
    """Insert a row with a new id, which it returns."""
    ident = uuid4()
    row = {"tenant_id": world.tenant.tenant_id, "id": ident, **values}
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder() for _ in row),
    )
    connection.execute(statement, list(row.values()))
    return str(ident)
