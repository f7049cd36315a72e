"""What goes with something retired, and what stays although it names it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from tests.fixtures.worker import drain
from tests.integration.cycles.conftest import DAY, NOW, Cycling

from memory_os.domain.labels import LABELS
from memory_os_workers.context import WorkerContext

pytestmark = pytest.mark.anyio

TICK = timedelta(microseconds=1)
PROTECTED = {"Preference", "Belief", "Value", "Skill", "Behavior", "Commitment"}
APART = ("SUPERSEDES", "EVOLVED_INTO", "DUPLICATES", "EXTRACTED_FROM")


@dataclass
class Shelf:
    """A retired kettle and a stove in use, and memories about either."""

    cycling: Cycling
    worker: WorkerContext
    kettle: str = ""
    stove: str = ""
    names: dict[str, str] = field(default_factory=dict)

    async def declare(self, name: str, **fields: Any) -> str:
        made = await self.cycling.post("/v1/memory/entities", name=name, entity_type="thing", **fields)
        return str(made["entity"]["id"])

    async def keep(self, name: str, text: str, label: str = "Attribute", **fields: Any) -> str:
        ident = await self.cycling.memory(text, label, **fields)
        self.names[ident] = name
        return ident

    async def tie(self, memory: str, entity: str, kind: str = "ABOUT", *, back: bool = False, **values: Any) -> None:
        ends = [{"memory": memory}, {"entity": entity}]
        source, target = reversed(ends) if back else ends
        made = await self.cycling.post("/v1/edges", type=kind, **{"from": source, "to": target})
        if values:
            self.cycling.put("edges", made["edge"]["id"], **values)

    async def link(self, entity: str, memory: str, relationship: str, **window: Any) -> str:
        body = {"layer": "memory", "target_id": memory, "relationship": relationship}
        dates = {name: date.isoformat() for name, date in window.items()}
        made = await self.cycling.post(f"/v1/memory/entities/{entity}/links", **body, **dates)
        return str(made["link"]["id"])

    async def archived(self) -> set[str]:
        """The names of what a month archives."""
        await drain(self.worker)
        self.cycling.put("entities", self.kettle, status="retired")
        self.cycling.rows("UPDATE memories SET created_at = %s RETURNING 1", NOW - 200 * DAY)
        run = await self.cycling.run("monthly")
        actions = [action for action in self.cycling.actions(run) if action["rule"] == "archive_retired"]
        return {self.names[str(action["target_id"])] for action in actions}


@pytest.fixture
async def shelf(cycling: Cycling, worker: WorkerContext) -> Shelf:
    made = Shelf(cycling, worker)
    made.kettle, made.stove = [await made.declare(name) for name in ("Kettle", "Stove")]
    return made


async def test_what_refers_to_it_goes_unless_its_label_is_protected(shelf: Shelf) -> None:
    for label in LABELS:
        await shelf.tie(await shelf.keep(label, f"A {label} for the kitchen.", label), shelf.kettle)
        await shelf.link(shelf.kettle, await shelf.keep(f"{label} linked", f"Linked is {label}.", label), "has")
        await shelf.keep(f"{label} named", f"So the Kettle has {label}.", label)
    going = set(LABELS) - PROTECTED
    expected = going | {f"{label} linked" for label in going} | {f"{label} named" for label in going}
    assert await shelf.archived() == expected


async def test_statuses_that_are_not_active_are_left_alone(shelf: Shelf) -> None:
    for status in ("completed", "abandoned", "disputed", "superseded", "retracted", "archived"):
        ident = await shelf.keep(status, f"It is {status}.", "Goal")
        await shelf.tie(ident, shelf.kettle)
        shelf.cycling.put("memories", ident, status=status)
    assert await shelf.archived() == set()


async def test_what_a_living_one_holds_as_firmly_stays(shelf: Shelf) -> None:
    await shelf.keep("moved", "We moved from Kettle to Stove.")
    about = await shelf.keep("filed under it", "Stove and Ann do not matter here.")
    await shelf.tie(about, shelf.kettle)
    both = await shelf.keep("about both", "One of two.")
    for entity in (shelf.kettle, shelf.stove):
        await shelf.tie(both, entity)
    linked = await shelf.keep("linked to the living", "Two of two.")
    await shelf.tie(linked, shelf.kettle)
    await shelf.link(shelf.stove, linked, "has")
    named = await shelf.keep("names it, and about the living", "So the Kettle was cold.")
    await shelf.tie(named, shelf.stove)
    await shelf.keep("names it and somebody", "So the Kettle met Ann Miller, says Ann Miller.")
    assert await shelf.archived() == {"filed under it", "names it and somebody"}


async def test_a_living_one_that_is_put_away_holds_nothing(shelf: Shelf) -> None:
    both = await shelf.keep("about both", "One of two.")
    for entity in (shelf.kettle, shelf.stove):
        await shelf.tie(both, entity)
    shelf.cycling.put("entities", shelf.stove, status="archived")
    assert await shelf.archived() == {"about both"}


@pytest.mark.parametrize("kind", APART)
async def test_what_takes_its_place_outlasts_it(shelf: Shelf, kind: str) -> None:
    for back in (False, True):
        ident = await shelf.keep(f"{kind} {back}", f"Text {back}.")
        await shelf.tie(ident, shelf.kettle, kind, back=back)
    assert await shelf.archived() == set()


async def test_what_it_blocked_or_made_possible_is_not_over_with_it(shelf: Shelf) -> None:
    for kind in ("BLOCKS", "ENABLES", "INFLUENCES", "SUPPORTS"):
        await shelf.tie(await shelf.keep(kind, f"A goal that it {kind}.", "Goal"), shelf.kettle, kind, back=True)
        await shelf.tie(await shelf.keep(f"{kind} it", f"This {kind} it.", "Goal"), shelf.kettle, kind)
    assert await shelf.archived() == {"BLOCKS it", "ENABLES it", "INFLUENCES it", "SUPPORTS it"}


async def test_a_link_ends_at_its_moment(shelf: Shelf) -> None:
    for name, end in (("past", NOW - DAY), ("now", NOW), ("later", NOW + TICK)):
        ident = await shelf.keep(name, f"The lease is {name}.")
        await shelf.link(shelf.stove, ident, "keeps", valid_from=NOW - 90 * DAY, valid_to=end)
    await shelf.link(shelf.stove, await shelf.keep("open", "The lease is open."), "keeps")
    assert await shelf.archived() == {"past", "now"}


async def test_a_link_that_was_ended_for_another_leaves_its_memory(shelf: Shelf) -> None:
    ended = {"valid_from": NOW - 90 * DAY, "valid_to": NOW - DAY}
    same = await shelf.keep("renewed", "The lease was renewed.")
    await shelf.link(shelf.stove, same, "keeps", **ended)
    await shelf.link(shelf.stove, same, "keeps again", valid_from=NOW - DAY)
    other = await shelf.keep("handed on", "The lease was handed on.")
    oven = await shelf.declare("Oven")
    await shelf.link(shelf.stove, other, "keeps", **ended)
    await shelf.link(oven, other, "keeps", valid_from=NOW - DAY)
    retired = await shelf.keep("handed to what is retired", "The lease was handed back.")
    await shelf.link(shelf.stove, retired, "keeps", **ended)
    await shelf.link(shelf.kettle, retired, "keeps", valid_from=NOW - DAY)
    assert await shelf.archived() == {"handed to what is retired"}


async def test_merged_entities_count_as_the_one_that_is_left(shelf: Shelf) -> None:
    urn, oven, samovar = [await shelf.declare(name) for name in ("Urn", "Oven", "Samovar")]
    await shelf.tie(await shelf.keep("of one that went into the living", "One."), oven)
    await shelf.keep("names one that went into the living", "So the Oven was hot.")
    await shelf.tie(await shelf.keep("of one that went into the retired", "Two."), urn)
    await shelf.keep("names one that went into the retired", "So the Urn was cold.")
    retired = await shelf.keep("of a retired one that went into the living", "Three.")
    await shelf.tie(retired, samovar)
    shelf.cycling.put("entities", samovar, status="retired")
    await drain(shelf.worker)
    for source, into in ((oven, shelf.stove), (urn, shelf.kettle), (samovar, shelf.stove)):
        await shelf.cycling.post("/v1/memory/entities/merge", **{"from": source, "into": into})
    assert await shelf.archived() == {"of one that went into the retired", "names one that went into the retired"}


async def test_nobodys_private_list_takes_a_memory_from_others(shelf: Shelf) -> None:
    private = await shelf.declare("Secret Kettle")
    everybodys = await shelf.keep("everybody's", "For all.")
    await shelf.tie(everybodys, private)
    own = await shelf.keep("her own", "For Ann.")
    await shelf.tie(own, private)
    shelf.cycling.put("memories", own, visibility="private", user_id="ann")
    shelf.cycling.put("entities", private, status="retired", visibility="private", user_id="ann")
    assert await shelf.archived() == {"her own"}


async def test_an_edge_that_the_same_run_prunes_still_counts(shelf: Shelf) -> None:
    weak = {"used_at": NOW - 40 * DAY, "confidence": 0.1, "co_reference_count": 0}
    await shelf.tie(await shelf.keep("gone", "Weakly about it."), shelf.kettle, **weak)
    kept = await shelf.keep("kept", "About both.")
    await shelf.tie(kept, shelf.kettle)
    await shelf.tie(kept, shelf.stove, **weak)
    assert await shelf.archived() == {"gone"}
    assert len(shelf.cycling.rows("SELECT id FROM archived_edges")) == 2


async def test_a_derived_entity_that_an_archived_edge_alone_holds_is_kept_for_its_return(
    shelf: Shelf, worker: WorkerContext
) -> None:
    cycling = shelf.cycling
    naming = await shelf.keep("naming", "They met Ann Miller, says Ann Miller.")
    await drain(worker)
    (entity,) = cycling.rows("SELECT id FROM entities WHERE name = 'Ann Miller'")
    other = await shelf.keep("other", "Something else.")
    weak = {"used_at": NOW - 40 * DAY, "confidence": 0.1, "co_reference_count": 0}
    await shelf.tie(other, str(entity["id"]), **weak)
    await cycling.client.delete(f"/v1/memories/{naming}", headers=cycling.tenant.headers("admin"))
    await drain(worker)
    before = cycling.state()
    run = await cycling.run("monthly")
    await drain(worker)
    graph = await worker.backend.dump(cycling.tenant.tenant_id)
    assert str(entity["id"]) not in graph.entities
    assert cycling.state()["entities"] == before["entities"]
    night = await cycling.run("nightly")
    assert [action for action in cycling.actions(night) if action["rule"] == "drop_entities"] == []
    assert await cycling.undo(run) == []
    await drain(worker)
    assert cycling.state() == before
    assert str(entity["id"]) in (await worker.backend.dump(cycling.tenant.tenant_id)).entities
