"""The history of a simulated year, day by day: the same for the same seed, and nothing in it depends on the clock.

What is planted lies in `world.json`, with what it is asked by at the end; the daily notes around it are made of lists.
Times of the plot are shares of the year, so that a shorter one has the same plot.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from .steps import Amend, Ask, Declare, Finish, Replace, Retire, Step, Tie, Write

WORLD: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("world.json").read_text())
START: Final = datetime(2025, 1, 1, tzinfo=UTC)
"""Long past whenever this runs, so that nothing in a year lies ahead of the real clock."""

DAY: Final = timedelta(days=1)
WORKDAYS: Final = 5
SEEN: Final = 7
"""How often a behaviour is seen, once a week where the year is long enough: twice more than make it recur."""

HALF: Final = 0.5
"""The share of the year after which the system is retired."""

ABANDONED: Final = "Quarry"
"""The topic whose goal is given up; the others reach theirs."""

OUTCOMES: Final = {"complete": "completed", "abandon": "abandoned"}

PROTECTED: Final = ("COMMITTED_TO", "EVOLVED_INTO", "EXTRACTED_FROM")


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the fixed set, and the key of what answers it."""

    query: str
    expected: str
    kind: str


@dataclass(slots=True)
class History:
    """A year: what happens on each day, and what must hold at its end."""

    days: list[list[Step]]
    questions: list[Question] = field(default_factory=list)
    evergreen: list[str] = field(default_factory=list)
    opportunities: dict[str, datetime] = field(default_factory=dict)
    retired: dict[str, str] = field(default_factory=dict)
    recurring: list[str] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)
    doubles: list[str] = field(default_factory=list)
    goals: dict[str, str] = field(default_factory=dict)
    chains: dict[str, list[str]] = field(default_factory=dict)

    def day_of(self, share: float) -> int:
        """The number of the day at a share of the year."""
        return min(len(self.days) - 1, int(share * len(self.days)))

    def seen(self, key: str, moment: datetime) -> int:
        """How often something was noted before a moment."""
        days = [day for number, day in enumerate(self.days) if date_of(number) + DAY <= moment]
        return sum(isinstance(step, Write) and step.key == key for day in days for step in day)


def make_history(days: int, *, seed: int = 7, notes: float = 1.0) -> History:
    """Write a history.

    Args:
        days: How long it is.
        seed: Of all chance in it.
        notes: Daily notes of a topic on a working day, on average.
    """
    made, source = History([[] for _ in range(days)]), random.Random(seed)
    _plant(made)
    for topic in WORLD["topics"]:
        _topic(made, topic, source, notes)
    _system(made, source)
    _behaviors(made, source)
    _chains(made)
    _doubles(made, source)
    _seldom(made, source)
    return made


def date_of(number: int) -> datetime:
    """The morning of a day."""
    return START + number * DAY


def is_workday(number: int) -> bool:
    """Whether the team works on a day."""
    return date_of(number).weekday() < WORKDAYS


def _workdays(first: int, end: int) -> Iterator[int]:
    return (number for number in range(first, end) if is_workday(number))


def _plant(made: History) -> None:
    """What stays, in the first weeks; on the way one slip of the pen, mended a day later."""
    for place, fact in enumerate([*WORLD["evergreen"], *({**one, "label": "Commitment"} for one in WORLD["promises"])]):
        day = min(place // 3, len(made.days) - 2)
        own = fact.get("own", False)
        slip = fact["text"].removesuffix(".") + ", as far as is known." if place == 1 else fact["text"]
        made.days[day].append(Write(fact["key"], fact["label"], slip, own=own))
        if slip != fact["text"]:
            made.days[day + 1].append(Amend(fact["key"], fact["text"]))
        made.evergreen.append(fact["key"])
        made.questions.append(Question(fact["question"], fact["key"], "evergreen"))


def _topic(made: History, topic: dict[str, Any], source: random.Random, notes: float) -> None:
    """One that comes and goes: its core and goal, daily notes around them, questions, and the end of it."""
    name: str = topic["name"]
    till = topic["start"] + topic["length"]
    days = list(_workdays(made.day_of(topic["start"]), made.day_of(till) if till < 1 else len(made.days)))
    made.days[days[0]].append(Declare(name, name, "project"))
    made.days[days[0]].append(Write(f"{name} goal", "Goal", topic["goal"], (Tie("ABOUT", name),)))
    core = _core(made, topic, days)
    written: list[str] = []
    for place, day in enumerate(days):
        for _ in range(int(notes + source.random())):
            note = _note(f"{name} {len(written)}", topic, date_of(day), source, [*core[: place + 1], *written[-10:]])
            written.append(note.key)
            made.days[day].append(note)
            if note.valid_to is not None:
                made.opportunities[note.key] = note.valid_to
        if place >= len(core):
            made.days[day].append(_ask_core(topic, core, source))
    if till < 1:
        how = "abandon" if name == ABANDONED else "complete"
        made.days[days[-1]].append(Finish(f"{name} goal", how))
        made.goals[f"{name} goal"] = OUTCOMES[how]
    else:
        made.goals[f"{name} goal"] = "active"


def _core(made: History, topic: dict[str, Any], days: Sequence[int]) -> list[str]:
    """What a topic is about, one a day, each tied to those before it."""
    name, keys = topic["name"], list[str]()
    for place, one in enumerate(topic["core"]):
        ties = [Tie("ABOUT", name, 0.6)]
        if keys:
            ties.append(Tie(("SUPPORTS", "REQUIRES", "ENABLES")[place % 3], keys[-1], 0.6))
            ties.append(Tie("PART_OF", keys[0], 0.6) if len(keys) > 1 else Tie("ADVANCES", f"{name} goal", 0.6))
        key = f"{name} core {place}"
        made.days[days[min(place, len(days) - 1)]].append(Write(key, one["label"], one["text"], tuple(ties)))
        made.questions.append(Question(one["question"], key, "lasting" if topic["length"] == 1 else "of a topic"))
        keys.append(key)
    return keys


def _ask_core(topic: dict[str, Any], core: Sequence[str], source: random.Random) -> Ask:
    place = source.randrange(len(core))
    return Ask(topic["core"][place]["question"], tuple(core[max(0, place - 1) : place + 2]))


def _note(key: str, topic: dict[str, Any], date: datetime, source: random.Random, before: Sequence[str]) -> Write:
    """A daily note, tied loosely to the topic, and mostly to something that was noted before it."""
    label = source.choices(list(WORLD["shares"]), weights=list(WORLD["shares"].values()))[0]
    text = source.choice(WORLD["notes"][label]).format(
        who=source.choice(WORLD["people"]),
        topic=topic["name"],
        part=source.choice(topic["parts"]),
        means=source.choice(WORLD["means"]),
        place=source.choice(WORLD["places"]),
    )
    ties = [Tie("ABOUT", topic["name"], round(source.uniform(0.3, 0.7), 2))]
    if source.random() < 0.7:
        kind = source.choice(("SUPPORTS", "INFLUENCES", "CAUSED_BY", "REQUIRES"))
        ties.append(Tie(kind, source.choice(before), round(source.uniform(0.25, 0.55), 2)))
    if source.random() < 0.05:
        ties.append(Tie(source.choice(PROTECTED), source.choice(before), 0.2))
    if label != "Opportunity":
        return Write(key, label, text, tuple(ties))
    return Write(key, label, text, tuple(ties), date + source.randint(5, 40) * DAY)


def _system(made: History, source: random.Random) -> None:
    """A system that is in use, is retired half-way, and has a successor."""
    system = WORLD["system"]
    made.days[0].append(Declare(system["name"], system["name"], system["type"]))
    half = made.day_of(HALF)
    for place, item in enumerate(system["items"]):
        key = f"{system['name']} {place}"
        day = source.randrange(1, max(2, half - 1))
        made.days[day].append(Write(key, item["label"], item["text"], (Tie("ABOUT", system["name"], 0.9),)))
        made.retired[key] = item["label"]
    made.days[half].append(Retire(system["name"]))
    heron = WORLD["successor"]
    made.days[half].append(Write(heron["key"], heron["label"], heron["text"]))
    made.questions.append(Question(heron["question"], heron["key"], "after a change"))


def _behaviors(made: History, source: random.Random) -> None:
    """What is seen again and again in the same words, in the first half of the year, and what is seen twice only."""
    days = len(made.days)
    gap = 7 if days // 2 > SEEN * 7 else max(1, days // 2 // SEEN)
    for place, one in enumerate(WORLD["behaviors"]):
        first = min(place * days // 8, max(0, days // 2 - SEEN * gap))
        for turn in range(SEEN):
            day = min(days - 1, first + turn * gap + source.randrange(gap))
            made.days[day].append(Write(one["key"], "Behavior", one["text"], own=one.get("own", False)))
        made.recurring.append(one["key"])
    for one in WORLD["passing"]:
        for week in (1, 2):
            made.days[min(week * 7, len(made.days) - 1)].append(Write(one["key"], "Behavior", one["text"]))
        made.passing.append(one["key"])


def _chains(made: History) -> None:
    """Facts that change: each new value takes the place of the one before it."""
    for chain in WORLD["chains"]:
        keys = [f"{chain['key']} {place}" for place in range(len(chain["texts"]))]
        for place, text in enumerate(chain["texts"]):
            day, own = made.day_of(0.05 + 0.3 * place), chain.get("own", False)
            made.days[day].append(
                Replace(keys[place], keys[place - 1], text, own)
                if place
                else Write(keys[0], chain["label"], text, own=own)
            )
        made.chains[chain["key"]] = keys
        made.questions.append(Question(chain["question"], keys[-1], "after a change"))


def _doubles(made: History, source: random.Random) -> None:
    """Every week somebody whose gate is off notes again what another one has, with other small words."""
    for week in range(1, len(made.days) // 7):
        day = week * 7 + 2
        steps = [step for steps in made.days[day - 7 : day] for step in steps]
        notes = [step for step in steps if isinstance(step, Write) and step.label == "Reference"]
        if notes:
            note = source.choice(notes)
            key = f"double {week}"
            text = note.text.replace(" a ", " the ").replace("A ", "The ", 1).replace("An ", "The ", 1)
            made.days[day].append(Write(key, note.label, text, gated=False))
            made.doubles.append(key)


def _seldom(made: History, source: random.Random) -> None:
    """A question about something that stays, once a week, and one about the daily notes, from which nothing is used."""
    facts = [*WORLD["evergreen"], *WORLD["promises"]]
    for week in range(2, len(made.days) // 7):
        fact = source.choice(facts)
        made.days[week * 7 + 3].append(Ask(fact["question"], (fact["key"],)))
        topic = source.choice(WORLD["topics"])
        words = {
            "means": source.choice(WORLD["means"]),
            "part": source.choice(topic["parts"]),
            "place": source.choice(WORLD["places"]),
        }
        made.days[week * 7 + 1].append(Ask(source.choice(WORLD["once_asked"]).format(**words)))
