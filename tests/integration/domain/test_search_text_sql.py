# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

import psycopg
import pytest

from memory_os.domain.search_text import search_text

Connection = psycopg.Connection[tuple[object, ...]]


def lexemes(database: Connection, text: str) -> set[str]:
    row = database.execute("SELECT tsvector_to_array(to_tsvector('simple', %s))", [search_text(text)]).fetchone()
    assert row is not None
    found = row[0]
    assert isinstance(found, list)
    return set(found)


@pytest.mark.parametrize(
    ("stored", "query"),
    [
        ("The Who played in Leeds", "The Who"),
        ("我在北京大学读书", "北京"),
        ("東京タワーの近く", "タワー"),
        ("어제 김민수가 왔다", "김민수"),
        ("คุณสมชายไปตลาด", "สมชาย"),
        ("the file src/memory_os/app.py failed", "memory_os"),
        ("the file src/memory_os/app.py failed", "app.py"),
        ("ask bob.smith@acme.com about it", "acme"),
        ("getUserName is slow", "user name"),
        ("written in C++", "C++"),
        ("ticket ASR1603 is open", "asr1603"),
        ("Ａｃｍｅ and A\u030angstrom", "acme Ångstrom"),
        ("हिन्दी भाषा", "भाषा"),
    ],
)
def test_the_query_meets_the_document(database: Connection, stored: str, query: str) -> None:
    wanted = lexemes(database, query)
    assert wanted
    assert wanted <= lexemes(database, stored)


def test_what_the_parser_drops_is_kept_apart(database: Connection) -> None:
    assert lexemes(database, "C++") != lexemes(database, "C#")


@pytest.mark.parametrize(
    "query", ["`", "???", "", " " * 10_000, "_", "a _ b", "\x00", "\ud800", " ".join(["word"] * 200)]
)
def test_no_query_fails(database: Connection, query: str) -> None:
    lexemes(database, query)
