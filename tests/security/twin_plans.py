"""Histories that are told twice: what many users store, with what one principal may not read, and without.

Users and groups have names of which one is the beginning, the pattern or the escape of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal
from uuid import UUID

from hypothesis import strategies as st

Kind = Literal["memory", "entity", "observation", "procedure", "outcome", "source"]
KINDS: Sequence[Kind] = ("memory", "memory", "memory", "entity", "observation", "procedure", "outcome", "source")
"""Kinds of records; memories are the most."""

NAMES = (
    *("a", "ab", "a_b", "a-b", "a%", "a.b", "A", "a ", "%", "_", "a:b", "a\\b", "a'b", 'a"b', "a,b", "{a,b}", "null"),
    *("x" * 200, "x" * 199, "\N{FOX FACE}", "e\u0301", "\N{LATIN SMALL LETTER E WITH ACUTE}", "a\u200db"),
)
"""Names of users and groups."""

PERSONS = ("Ada Lovelace", "Bob Stone", "Mary Stone", "Walter Falk")
"""Whom memories name, hidden ones and others."""

THINGS = ("pizza oven", "wooden boat", "old kiln")
LABELS = ("Attribute", "Event", "Skill", "Decision")
EDGE_TYPES = ("SUPPORTS", "CONTRADICTS", "ABOUT", "PART_OF", "CAUSED_BY")


@dataclass(frozen=True)
class Who:
    """A user with groups, or a service without a user."""

    user: str | None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class Spec:
    """A record: what it says, whose it is, and who may read it in the end.

    `narrowed`: everybody could read it at first. `gated`: it passes the dedup gate. `named`: an entity that it names.
    """

    number: int
    kind: Kind
    owner: Who
    visibility: Literal["tenant", "private", "restricted"]
    users: tuple[str, ...]
    groups: tuple[str, ...]
    persons: tuple[str, str]
    thing: str
    label: str
    loud: bool
    narrowed: bool
    gated: bool
    named: str = ""

    @property
    def id(self) -> str:
        """Chosen by the client, the same in both tellings."""
        return pinned("record", self.number)

    @property
    def canary(self) -> str:
        """A word that stands in every text of it, and in no other."""
        return "Zq" + "".join(chr(ord("a") + int(digit)) for digit in f"{self.number:02d}") + "qz"

    @property
    def text(self) -> str:
        """What it says: names that others say too, and its own word."""
        first, second = self.persons
        said = f"{first} sold the {self.thing} to {second} near {self.canary} Street.{self.named}"
        return said.replace(first, first.upper()) if self.loud else said

    def readable_by(self, who: Who) -> bool:
        """Whether somebody may read it in the end."""
        if self.visibility == "tenant" or (self.owner.user is not None and self.owner.user == who.user):
            return True
        return self.visibility == "restricted" and (
            who.user in self.users or not set(self.groups).isdisjoint(who.groups)
        )


@dataclass(frozen=True)
class Relation:
    """Something between two records, by their places, or about the first alone."""

    number: int
    kind: Literal["edge", "link", "evidence", "correction", "dispute", "archive", "retrieval"]
    start: Spec
    end: Spec
    edge_type: str

    @property
    def id(self) -> str:
        """As of a record."""
        return pinned("relation", self.number)

    @property
    def word(self) -> str:
        """Its own canary."""
        return "Zr" + "".join(chr(ord("a") + int(digit)) for digit in f"{self.number:02d}") + "rz"

    def author(self) -> Who | None:
        """Somebody who may say it: the owner of one end who may read the other."""
        return next((who for who in (self.start.owner, self.end.owner) if self.readable_by(who)), None)

    def readable_by(self, who: Who) -> bool:
        """Whether somebody may read what it concerns."""
        both = self.kind in ("edge", "link", "evidence")
        return self.start.readable_by(who) and (self.end.readable_by(who) or not both)


@dataclass(frozen=True)
class Plan:
    """A history, and who reads it."""

    reader: Who
    people: tuple[Who, ...]
    records: tuple[Spec, ...]
    relations: tuple[Relation, ...]

    def hidden(self) -> list[Spec]:
        """The records that the reader may not read."""
        return [spec for spec in self.records if not spec.readable_by(self.reader)]

    def secrets(self) -> set[str]:
        """Words, in lower case, that nothing the reader is told may hold."""
        words = {spec.canary.lower() for spec in self.hidden()}
        return words | {relation.word.lower() for relation in self.relations if not relation.readable_by(self.reader)}


def pinned(kind: str, number: int) -> str:
    """The id of a record of a plan."""
    return str(UUID(bytes=blake2b(f"{kind} {number}".encode(), digest_size=16).digest(), version=4))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Histories of 6 to 14 records, at least one of them hidden from the reader."""
    names = st.sampled_from(NAMES)
    some = st.lists(names, max_size=2, unique=True).map(tuple)
    reader = draw(st.builds(Who, st.one_of(names, names, st.none()), some))
    people = (reader, *draw(st.lists(st.builds(Who, names, some), min_size=2, max_size=4)))
    records = tuple(draw(_record(number, people, some)) for number in range(draw(st.integers(6, 14))))
    if all(spec.readable_by(reader) for spec in records):
        other = Who("somebody else")
        records = (*records, draw(_record(len(records), (other,), st.just(()), ["private"])))
    records = tuple(_naming(spec, draw(st.sampled_from(records)), reader) for spec in records)
    relations = draw(st.lists(_relation(records), max_size=16))
    numbered = tuple(Relation(number, *parts) for number, parts in enumerate(relations))
    return Plan(reader, people, records, numbered)


def _record(
    number: int,
    people: Sequence[Who],
    some: st.SearchStrategy[tuple[str, ...]],
    visibilities: Sequence[str] = ("tenant", "tenant", "private", "restricted"),
) -> st.SearchStrategy[Spec]:
    made = st.builds(
        Spec,
        st.just(number),
        st.sampled_from(KINDS),
        st.sampled_from(people),
        st.sampled_from(visibilities),
        some,
        some,
        st.permutations(PERSONS).map(lambda order: (order[0], order[1])),
        st.sampled_from(THINGS),
        st.sampled_from(LABELS),
        st.booleans(),
        st.booleans(),
        st.booleans(),
    )
    return made.filter(lambda spec: spec.visibility == "tenant" or spec.owner.user is not None)


def _naming(spec: Spec, other: Spec, reader: Who) -> Spec:
    """A memory that names another record, if that is an entity.

    None that the reader may read names an entity that they may not read: its name would stand for that one alone.
    """
    fits = spec.kind == "memory" and other.kind == "entity"
    if fits and (other.readable_by(reader) or not spec.readable_by(reader)):
        return replace(spec, named=f" It stands beside Kiln {other.canary}.")
    return spec


def _relation(records: Sequence[Spec]) -> st.SearchStrategy[tuple[object, ...]]:
    kinds = ("edge", "edge", "link", "link", "evidence", "evidence", "correction", "dispute", "archive", "retrieval")
    ends = st.sampled_from(records)
    return st.tuples(st.sampled_from(kinds), ends, ends, st.sampled_from(EDGE_TYPES)).filter(_fits)


def _fits(parts: tuple[object, ...]) -> bool:
    kind, start, end = parts[:3]
    assert isinstance(start, Spec)
    assert isinstance(end, Spec)
    pair = (start.kind, end.kind)
    return (
        start != end
        and {
            "edge": pair in {("memory", "memory"), ("memory", "entity"), ("entity", "memory")},
            "link": start.kind == "entity",
            "evidence": pair == ("memory", "source"),
            "correction": start.kind == "memory",
            "dispute": start.kind == "memory",
            "archive": start.kind == "memory",
            "retrieval": start.kind == "memory",
        }[str(kind)]
    )
