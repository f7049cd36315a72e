"""The text-search vector of a record: made by one function of the database wherever one is written."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func, literal

from memory_os.domain.search_text import search_text


def text_vector(*parts: str | None) -> ColumnElement[Any]:
    """The `tsvector` of a record's texts, stemmed as English and as it stands."""
    vector: ColumnElement[Any] = func.memory_os_text_vector(
        literal(search_text("\n".join(part for part in parts if part)))
    )
    return vector
