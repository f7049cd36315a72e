"""What cycles leave in a world: a row in each of their tables, with its mark, and hidden ones beside them.

Put straight into the database: the cycles themselves find nothing to do in a tenant that is minutes old.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb
from tests.security.provenances import Connection, Row, insert_row

if TYPE_CHECKING:
    from tests.security.worlds import World

THEN = datetime(2026, 1, 31, 2, 0, tzinfo=UTC)


def store_cycles(connection: Connection, world: World) -> None:
    """Schedule, runs and their actions, archived edges, candidates for Insights, and profiles."""
    ids, hidden = world.ids, world.hidden
    insert_row(connection, world, "cycle_schedules", cycle="weekly", cron="0 4 * * 0")
    ids["run"] = store_run(connection, world, status="done")
    ids["undone_later"] = store_run(connection, world, status="done")
    ids["failed_run"] = store_run(connection, world, status="failed")
    ids["action"] = store_action(connection, world, ids["run"], ids["memory"], mark=world.mark)
    store_action(connection, world, ids["undone_later"], ids["hidden_memory"], mark=world.mark)
    for memory in (ids["memory"], ids["hidden_memory"]):
        store_archived_edge(connection, world, memory, ids["spare"])
    everybody: Row = {"visibility": "tenant", "reader_users": [world.user], "reader_groups": [f"group {world.mark}"]}
    few = {**everybody, "visibility": "restricted"}
    for found, memory, readers in ((ids, ids["memory"], everybody), (hidden, ids["hidden_memory"], few)):
        for kind in ("candidate", "spare_candidate"):
            found[kind] = store_candidate(connection, world, memory, mark=world.mark, **readers)
    decided = {"status": "rejected", "decided_at": THEN, "decided_by": world.user, "reason": world.mark}
    store_candidate(connection, world, ids["memory"], mark=world.mark, **everybody, **decided)
    for user in (None, world.user):
        store_profile(connection, world, user, mark=world.mark)


def store_run(connection: Connection, world: World, *, status: str) -> str:
    """A monthly run of a period of its own."""
    told = {"period": f"{world.mark} {uuid4()}", "cursor": Jsonb({"after": world.mark}), "error": world.mark}
    when = {"moment": THEN, "rule": "extract_again", "counts": Jsonb({world.mark: 1}), "token_id": uuid4()}
    return insert_row(connection, world, "cycle_runs", cycle="nightly", role="admin", status=status, **told, **when)


def store_action(connection: Connection, world: World, run: str, memory: str, *, mark: str) -> str:
    """What a run did to a memory: of its text nothing, but that it was to be read again."""
    states = {"before": Jsonb({mark: 1}), "after": Jsonb({mark: 2})}
    target = {"target_kind": "memory", "target_id": UUID(memory), "act_id": uuid4()}
    return insert_row(
        connection, world, "cycle_actions", run_id=UUID(run), number=1, rule="extract_again", **target, **states
    )


def store_archived_edge(connection: Connection, world: World, source: str, target: str) -> str:
    """An edge that a cycle has put away."""
    ends = {"source_memory_id": UUID(source), "target_memory_id": UUID(target)}
    when = dict.fromkeys(("created_at", "updated_at", "used_at"), THEN)
    values = {"confidence": 0.2, "co_reference_count": 1, "version": 1}
    return insert_row(connection, world, "archived_edges", type="SUPPORTS", **ends, **when, **values)


def store_candidate(connection: Connection, world: World, memory: str, *, mark: str, **further: object) -> str:
    """A candidate of a memory and an entity."""
    words = {"title": f"Ovens {mark}", "text": f"The oven {mark} needs wood.", "summary": "extractive"}
    made = {"rule": "find_patterns", "strength": 0.5, "user_id": world.user, "run_id": uuid4()}
    candidate = insert_row(connection, world, "insight_candidates", **words, **made, **further)
    for kind, member in (("memory_id", memory), ("entity_id", world.ids["entity"])):
        connection.execute(
            f"INSERT INTO insight_members (tenant_id, candidate_id, member_id, {kind}) VALUES (%s, %s, %s, %s)",
            (world.tenant.tenant_id, UUID(candidate), UUID(member), UUID(member)),
        )
    return candidate


def store_profile(connection: Connection, world: World, user: str | None, *, mark: str) -> str:
    """The first version of a user's profile, or of the tenant's."""
    content = {"evergreen": [world.ids["memory"]], "goals": [], "commitments": [], "entities": [world.ids["entity"]]}
    diff = {section: {"added": found, "removed": []} for section, found in content.items()}
    whose = {"visibility": "private" if user else "tenant", "user_id": user, "version": 1, "moment": THEN}
    readers = {"reader_users": [world.user], "reader_groups": [f"group {world.mark}"]}
    told = {"content": Jsonb({**content, mark: []}), "diff": Jsonb({**diff, mark: {"added": [], "removed": []}})}
    return insert_row(connection, world, "profiles", run_id=uuid4(), **whose, **readers, **told)
