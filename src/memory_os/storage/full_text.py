"""The text-search vector of a record: the same two configurations wherever one is written."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, func, literal

from memory_os.domain.search_text import search_text


def text_vector(*parts: str | None) -> ColumnElement[Any]:
    """The `tsvector` of a record's texts, stemmed as English and as it stands."""
    shown = literal(search_text("\n".join(part for part in parts if part)))
    vector: ColumnElement[Any] = func.to_tsvector("english", shown).op("||")(func.to_tsvector("simple", shown))
    return vector
