"""Who may read a record, and whether all who may read one may read another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class ReaderLists(Protocol):
    """The users and groups that a restricted record names."""

    @property
    def users(self) -> Sequence[str]:
        """Users by name."""

    @property
    def groups(self) -> Sequence[str]:
        """Groups by name."""


class Readable(Protocol):
    """A record with readers: a memory, an entity, a business record."""

    @property
    def visibility(self) -> str:
        """`tenant`, `private` or `restricted`."""

    @property
    def user_id(self) -> str | None:
        """Whose it is."""

    @property
    def readers(self) -> ReaderLists:
        """Who else may read it while it is restricted."""


@dataclass(frozen=True, slots=True)
class Audience:
    """The readers of a record: all of its tenant, or these users and members of these groups."""

    everybody: bool
    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, record: Readable) -> Audience:
        """The readers of a record."""
        return cls._named(record.visibility, record.user_id, record.readers.users, record.readers.groups)

    @classmethod
    def of_columns(cls, row: Mapping[Any, Any]) -> Audience:
        """The readers of a row that has the four columns of readers."""
        return cls._named(row["visibility"], row["user_id"], row["reader_users"], row["reader_groups"])

    @classmethod
    def _named(cls, visibility: str, owner: str | None, users: Iterable[str], groups: Iterable[str]) -> Audience:
        if visibility == "tenant":
            return cls(everybody=True)
        own = frozenset() if owner is None else frozenset({owner})
        if visibility != "restricted":
            return cls(everybody=False, users=own)
        return cls(everybody=False, users=own | set(users), groups=frozenset(groups))

    def covers(self, other: Audience) -> bool:
        """Whether everybody in `other` is in this one. A user may be in a group; nobody here knows that."""
        if self.everybody or other.everybody:
            return self.everybody
        return other.users <= self.users and other.groups <= self.groups

    def admits(self, user_id: str | None, groups: Iterable[str]) -> bool:
        """Whether somebody is in it."""
        return self.everybody or user_id in self.users or not self.groups.isdisjoint(groups)

    def meet(self, other: Audience) -> Audience:
        """Those who are in both, as far as names tell: a user of one who is in a group of the other is left out."""
        if self.everybody or other.everybody:
            return other if self.everybody else self
        return Audience(everybody=False, users=self.users & other.users, groups=self.groups & other.groups)

    def columns(self) -> dict[str, object]:
        """As rows keep it that have readers and no user of their own."""
        return {
            "visibility": "tenant" if self.everybody else "restricted",
            "user_id": None,
            "reader_users": sorted(self.users),
            "reader_groups": sorted(self.groups),
        }
