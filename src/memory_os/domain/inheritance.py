"""Who may read what was taken from sources: by default nobody who may not read all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import Literal

from memory_os.domain.audiences import Audience


@dataclass(frozen=True, slots=True)
class Readership:
    """The readers of a record as it keeps them, beside its own user."""

    visibility: Literal["tenant", "private", "restricted"]
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def narrowest(sources: Iterable[Audience], user_id: str | None, groups: Iterable[str]) -> Readership | None:
    """The readers of what a writer takes from sources that they may read.

    Args:
        sources: The readers of each source.
        user_id: The user that the writer acts for; what they write is theirs.
        groups: The groups of that user.

    Returns:
        Those who may read all of the sources, as far as names tell, and the writer in any case: where these leave the
        writer out (a reader through a group here and by name there), it is the writer's own. None where nobody is left,
        since the writer acts for no user.
    """
    meet = reduce(Audience.meet, sources, Audience(everybody=True))
    if meet.everybody:
        return Readership("tenant")
    if meet.admits(user_id, groups):
        others = meet.users - {user_id}
        if others or meet.groups:
            return Readership("restricted", tuple(sorted(others)), tuple(sorted(meet.groups)))
    return None if user_id is None else Readership("private")


def is_wider(readers: Audience, source: Audience, writer: str | None) -> bool:
    """Whether some of the readers, other than the writer, may not read a source, as far as names tell."""
    return not source.covers(Audience(readers.everybody, readers.users - {writer}, readers.groups))
