"""A simulated reviewer, who accepts each Insight that the cycles propose, the person's own as the person."""

from __future__ import annotations

from typing import Any, Final

from .living import Life

ABSENT: Final = 404
PAGE: Final = 200


async def review(life: Life, _: int) -> None:
    """Accept what is open, and put what comes of it to the time of the night that proposed it."""
    rows = life.clock.rows(
        "SELECT c.id, c.user_id, c.created_at FROM insight_candidates AS c "
        "WHERE c.tenant_id = %(tenant)s AND c.status = 'open' ORDER BY c.created_at, c.id LIMIT %(page)s",
        tenant=life.clock.tenant_id,
        page=PAGE,
    )
    if not rows or not await offers(life):
        return
    since = life.clock.now()
    for row in rows:
        await life.call("POST", f"/v1/insights/{row['id']}/accept", {}, own=row["user_id"] is not None)
        life.accepted += 1
    await life.settle()
    life.clock.shift(since, rows[-1]["created_at"])


async def offers(life: Life) -> bool:
    """Whether the service lets Insights be reviewed."""
    answer = await life.client.get("/v1/insights", headers=life.headers)
    return answer.status_code != ABSENT


def insights_of(life: Life) -> list[dict[str, Any]]:
    """Every candidate, and the ids of the memories that it was made of."""
    return life.clock.rows(
        "SELECT c.rule, c.status, c.memory_id, array_agg(m.memory_id::text) AS members "
        "FROM insight_candidates AS c JOIN insight_members AS m ON m.tenant_id = c.tenant_id AND m.candidate_id = c.id "
        "WHERE c.tenant_id = %(tenant)s GROUP BY c.tenant_id, c.id",
        tenant=life.clock.tenant_id,
    )
