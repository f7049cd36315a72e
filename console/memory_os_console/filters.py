"""The filter of the events list: from an address, to an address, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast, get_args
from urllib.parse import urlencode
from uuid import UUID

from memory_os.admin.reach import seen_tenant
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import check_text
from memory_os.errors import FieldError, InvalidInputError
from memory_os.outbox.events import AggregateType, EventType
from memory_os.outbox.operations import EventFilter, Status

STATUSES: Final = get_args(Status)
EVENT_TYPES: Final = get_args(EventType)
AGGREGATE_TYPES: Final = get_args(AggregateType)
_WORDS: Final = {"status": STATUSES, "event_type": EVENT_TYPES, "aggregate_type": AGGREGATE_TYPES}
_IDS: Final = ("aggregate_id", "tenant_id")
_NAMES: Final = (*_WORDS, *_IDS, "error", "cursor")
_ERROR_CHARS: Final = 200
_CURSOR_CHARS: Final = 1024


@dataclass(frozen=True, slots=True)
class EventQuery:
    """A filter and a place in its list. `given` holds the parameters as the address had them, without empty ones."""

    wanted: EventFilter
    cursor: str | None
    given: Mapping[str, str]

    def query(self, **changes: str | None) -> str:
        """The query string of this filter with some parameters changed; None leaves one out. The cursor is not kept."""
        kept = {name: value for name, value in self.given.items() if name != "cursor"}
        chosen = {name: value for name, value in {**kept, **changes}.items() if value}
        return f"?{urlencode(chosen)}" if chosen else ""

    def in_words(self, tenants: Mapping[UUID, str]) -> list[tuple[str, str]]:
        """What the list is narrowed to, as label and value."""
        labels = {
            "status": "Status",
            "event_type": "Type",
            "aggregate_type": "Record",
            "aggregate_id": "Record id",
            "error": "Error",
        }
        words = [(label, self.given[name]) for name, label in labels.items() if name in self.given]
        if tenant := self.given.get("tenant_id"):
            words.append(("Tenant", tenants.get(UUID(tenant), tenant)))
        return words


def parse_event_query(parameters: Mapping[str, str], principal: Principal) -> EventQuery:
    """Read a filter from an address or a form. What is empty narrows nothing; what is unknown is refused, not ignored.

    Raises:
        InvalidInputError: With a pointer for each fault.
        PermissionDeniedError: If anybody but root names another tenant.
    """
    given = {name: value.strip() for name, value in parameters.items() if value.strip()}
    faults = [FieldError(f"/{name}", fault) for name, value in given.items() if (fault := _fault(name, value))]
    if faults:
        raise InvalidInputError("events can't be filtered like that", errors=faults)
    tenant_id, aggregate_id = (UUID(given[name]) if name in given else None for name in ("tenant_id", "aggregate_id"))
    wanted = EventFilter(
        seen_tenant(principal, tenant_id),
        cast("Status | None", given.get("status")),
        cast("EventType | None", given.get("event_type")),
        cast("AggregateType | None", given.get("aggregate_type")),
        aggregate_id,
        given.get("error"),
    )
    return EventQuery(wanted, given.get("cursor"), given)


def _fault(name: str, value: str) -> str | None:
    if name not in _NAMES:
        return "there is no such filter"
    if name in _WORDS and value not in _WORDS[name]:
        return f"must be one of {', '.join(_WORDS[name])}"
    if name in _IDS:
        try:
            UUID(value)
        except ValueError:
            return "must be an id, such as 0199d2c4-5b1e-7c3a-9f00-3d5e8a1b2c4d"
    if len(value) > (_CURSOR_CHARS if name == "cursor" else _ERROR_CHARS):
        return f"must not be longer than {_ERROR_CHARS} characters"
    return check_text(value)
