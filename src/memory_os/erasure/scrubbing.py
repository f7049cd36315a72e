"""Taking what goes out of JSON that stays: the rows that acts keep as they were, and what logs tell of them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Final

_TRACES: Final = frozenset({"superseded_by", "migrated_from"})
"""Where a row only says that another one was there: it is whole without."""

_USERS: Final = frozenset(
    {
        *("user_id", "user", "users", "reader_users", "acting_user", "requested_by"),
        *("proposed_user", "decided_user", "decided_by", "discarded_by"),
    }
)
"""Names of fields that hold users. What else equals a user's name is a word like any other."""


def without_records(value: Any, gone: AbstractSet[str]) -> Any:  # noqa: ANN401 - any JSON value
    """A value without what names one of these records.

    Of a list, whole elements go: an edge or link that led to the record is nothing without it. What is the record
    itself, as it was, becomes empty. Elsewhere the name becomes null.

    Args:
        value: Any JSON value.
        gone: The ids of the records, as text.
    """
    if isinstance(value, dict):
        own = value.get("id")
        itself = isinstance(own, str) and own in gone
        return {} if itself else {name: without_records(one, gone) for name, one in value.items()}
    if isinstance(value, list):
        return [without_records(one, gone) for one in value if not _names(one, gone)]
    return None if isinstance(value, str) and value in gone else value


def _names(value: Any, gone: AbstractSet[str]) -> bool:  # noqa: ANN401 - as above
    if isinstance(value, dict):
        return any(_names(one, gone) for name, one in value.items() if name not in _TRACES)
    return isinstance(value, str) and value in gone


def names_any(value: Any, words: AbstractSet[str]) -> bool:  # noqa: ANN401 - as above
    """Whether one of these words stands anywhere in a value, as a whole text."""
    if isinstance(value, dict):
        return any(names_any(one, words) for one in value.values())
    if isinstance(value, list):
        return any(names_any(one, words) for one in value)
    return isinstance(value, str) and value in words


def holds_record_of(value: Any, user: str) -> bool:  # noqa: ANN401 - as above
    """Whether a record of a user, as it once was, stands in a value: then all of it is the user's."""
    if isinstance(value, list):
        return any(holds_record_of(one, user) for one in value)
    if not isinstance(value, dict):
        return False
    return ("id" in value and value.get("user_id") == user) or any(holds_record_of(one, user) for one in value.values())


def without_user(value: Any, user: str) -> Any:  # noqa: ANN401 - as above
    """A value without a user, in whatever field holds users: null alone, left out of lists."""
    if isinstance(value, list):
        return [without_user(one, user) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: _without(one, user) if name in _USERS else without_user(one, user) for name, one in value.items()}


def _without(value: Any, user: str) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, list):
        return [without_user(one, user) for one in value if one != user]
    return None if value == user else without_user(value, user)
