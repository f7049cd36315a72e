"""Who may read a record, and whether all who may read one may read another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


class _Lists(Protocol):
    @property
    def users(self) -> Sequence[str]: ...

    @property
    def groups(self) -> Sequence[str]: ...


class Readable(Protocol):
    """A record with readers: a memory, an entity, a business record."""

    @property
    def visibility(self) -> str:
        """`tenant`, `private` or `restricted`."""

    @property
    def user_id(self) -> str | None:
        """Whose it is."""

    @property
    def readers(self) -> _Lists:
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
        if record.visibility == "tenant":
            return cls(everybody=True)
        own = frozenset() if record.user_id is None else frozenset({record.user_id})
        if record.visibility != "restricted":
            return cls(everybody=False, users=own)
        return cls(everybody=False, users=own | set(record.readers.users), groups=frozenset(record.readers.groups))

    def covers(self, other: Audience) -> bool:
        """Whether everybody in `other` is in this one. A user may be in a group; nobody here knows that."""
        if self.everybody or other.everybody:
            return self.everybody
        return other.users <= self.users and other.groups <= self.groups

    def admits(self, user_id: str | None, groups: Iterable[str]) -> bool:
        """Whether somebody is in it."""
        return self.everybody or user_id in self.users or not self.groups.isdisjoint(groups)
