"""A small sample for the first start: one person's cooking thread, a vendor, and what came of a migration.

It goes in through the REST API, like any client's data, so that what a newcomer sees is what the service does.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import httpx

_BASE = 0x0000_4D45_4D4F_7000_8000_0000_0000_0000
"""Sample ids are fixed, so that a load that was cut short can be repeated without doubling anything."""


def sample_id(number: int) -> str:
    """Id of the sample's n-th record."""
    return str(UUID(int=_BASE + number))


MEMORIES: tuple[tuple[int, str, str], ...] = (
    (1, "Skill", "Makes Detroit-style pizza from scratch, starting with the dough."),
    (2, "Attribute", "Owns a pellet smoker and uses it on most weekends."),
    (3, "Behavior", "Cooks 90 % of the meals at home."),
    (4, "Opportunity", "A food truck that sells spring rolls could be tried at the summer market."),
    (5, "Goal", "Reach financial independence within ten years."),
    (6, "Value", "Likes to build things by hand together with his wife."),
    (7, "Preference", "Prefers recipes measured by weight over cups and spoons."),
    (8, "Decision", "The Ledger migration moves to Northwind Freight's new schema in March."),
    (9, "Event", "John from Northwind Freight demonstrated the customs export on 12 February."),
    (10, "Commitment", "John sends the revised freight rates before the quarter ends."),
    (11, "Insight", "Freight estimates were too low whenever customs holidays were left out."),
    (12, "Reference", "The retention policy keeps freight documents for seven years."),
)
EDGES: tuple[tuple[int, str, int], ...] = (
    (1, "SUPPORTS", 3),
    (2, "SUPPORTS", 3),
    (3, "ENABLES", 4),
    (4, "ADVANCES", 5),
    (6, "INFLUENCES", 4),
    (7, "PART_OF", 3),
    (9, "SUPPORTS", 8),
    (11, "INFLUENCES", 8),
)
ENTITIES: tuple[tuple[int, str, str, tuple[str, ...]], ...] = (
    (101, "Northwind Freight", "vendor", ("Northwind",)),
    (102, "Ledger migration", "project", ("the Ledger",)),
    (103, "John", "person", ()),
    (104, "Retention policy", "policy", ()),
)
LINKS: tuple[tuple[int, str, int, str], ...] = (
    (103, "entity", 101, "works at"),
    (101, "entity", 102, "supplies"),
    (104, "entity", 102, "governs"),
    (103, "memory", 10, "owns"),
)


def load(api_url: str, token: str) -> None:
    """Store the sample; doing it again changes nothing.

    Raises:
        httpx.HTTPError: If the API refuses or does not answer.
    """
    with httpx.Client(base_url=api_url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        items = [{"id": sample_id(n), "label": label, "text": text} for n, label, text in MEMORIES]
        _post(client, "/v1/memories/batch", {"items": items}, "sample-memories")
        for number, name, kind, aliases in ENTITIES:
            entity = {
                "id": sample_id(number),
                "name": name,
                "entity_type": kind,
                "aliases": list(aliases),
            }
            _post(client, "/v1/memory/entities", entity, f"sample-entity-{number}")
        for source, kind, target in EDGES:
            body = {"type": kind, "from": {"memory": sample_id(source)}, "to": {"memory": sample_id(target)}}
            _post(client, "/v1/edges", body, f"sample-edge-{source}-{target}")
        for holder, layer, target, relationship in LINKS:
            body = {"layer": layer, "target_id": sample_id(target), "relationship": relationship}
            path = f"/v1/memory/entities/{sample_id(holder)}/links"
            _post(client, path, body, f"sample-link-{holder}-{target}")
        outcome: dict[str, Any] = {
            "id": sample_id(201),
            "title": "First customs export",
            "summary": "The export ran in 40 minutes, and two of 1,200 documents had to be sent again.",
            "payload": {"minutes": 40, "documents": 1200, "repeated": 2},
        }
        _post(client, "/v1/memory/outcomes", outcome, "sample-outcome")


def _post(client: httpx.Client, path: str, body: dict[str, Any], key: str) -> None:
    answer = client.post(path, json=body, headers={"Idempotency-Key": key})
    answer.raise_for_status()
