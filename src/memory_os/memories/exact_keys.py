"""The key by which the database knows two memories for the same: equal words, for equal readers, about one subject."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from memory_os.domain.gate.exact import normal_form
from memory_os.domain.labels import LABELS

KEY_BYTES = 16


def exact_key_of(
    text: str,
    *,
    label: str,
    visibility: str,
    reader_users: Sequence[str],
    reader_groups: Sequence[str],
    subject: str | None,
    property_: str | None,
    occurred_at: datetime | None,
    valid_from: datetime | None,
) -> bytes:
    """The exact key of a memory; the user that it belongs to is a column of its own in the unique index.

    The readers are part of it: a memory never merges into one that fewer or other people may read. So are subject and
    property where a client names them, and the time of what happens again and again: two Events of one text at two
    times are two. So is the time from which a named property has a value, since it may have the same again later.
    """
    happened = occurred_at if LABELS[label].immutable_text else None
    since = valid_from if subject is not None and property_ is not None else None
    parts = [normal_form(text), visibility, *sorted(reader_users), "", *sorted(reader_groups), ""]
    parts += [subject or "", property_ or "", *map(_utc, (happened, since))]
    # Each part with its length, so that no two lists of parts give the same bytes.
    data = b"".join(b"%d:%b" % (len(part.encode()), part.encode()) for part in parts)
    return hashlib.blake2b(data, digest_size=KEY_BYTES).digest()


def _utc(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat()
