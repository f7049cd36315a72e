from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from memory_os.embedded import falkor_settings, postgres_settings
from memory_os.embedded.sockets import LONGEST_SOCKET_PATH, fits

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"))


def read_postgres(quoted: str) -> str:
    """As guc-file.l reads a quoted string: doubled quotes, and a backslash takes the next character."""
    inside, result, index = quoted[1:-1], "", 0
    while index < len(inside):
        if inside[index] in "'\\":
            index += 1
        result += inside[index]
        index += 1
    return result


@given(TEXT)
def test_postgres_reads_a_quoted_value_back(value: str) -> None:
    quoted = postgres_settings.quote(value)

    assert quoted[0] == quoted[-1] == "'"
    assert read_postgres(quoted) == value


def read_redis(quoted: str) -> bytes:
    """As sdssplitargs reads a double-quoted string of printable characters and `\\x` escapes."""
    inside, result, index = quoted[1:-1], bytearray(), 0
    while index < len(inside):
        assert 0x20 <= ord(inside[index]) < 0x7F
        assert inside[index] != '"'
        if inside[index] == "\\":
            result.append(int(inside[index + 2 : index + 4], 16))
            index += 4
        else:
            result.append(ord(inside[index]))
            index += 1
    return bytes(result)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_redis_reads_a_quoted_value_back_whatever_it_holds(value: str) -> None:
    assert read_redis(falkor_settings.quote(value)) == value.encode()


def test_each_setting_is_a_line_in_the_order_given() -> None:
    text = postgres_settings.render({"jit": "off", "search_path": "it's"})

    assert text.splitlines()[1:] == ["jit = 'off'", "search_path = 'it''s'"]


def test_small_shared_memory_is_avoided_and_a_missing_one_is_no_matter(tmp_path: Path) -> None:
    assert postgres_settings.shared_memory(tmp_path / "none") == {}
    assert postgres_settings.shared_memory(tmp_path, least_bytes=0) == {}
    assert postgres_settings.shared_memory(tmp_path, least_bytes=1 << 62) == {"dynamic_shared_memory_type": "sysv"}


def test_the_graph_servers_file_listens_on_loopback_keeps_everything_and_evicts_nothing() -> None:
    lines = falkor_settings.render(
        directory=Path("/data"), port=7, password='p"w', module=Path("/m.so"), memory_bytes=9
    ).splitlines()

    assert "bind 127.0.0.1" in lines
    assert 'requirepass "p\\x22w"' in lines
    assert "appendonly yes" in lines
    assert "maxmemory-policy noeviction" in lines
    assert lines[-1].startswith('loadmodule "/m.so" TIMEOUT_DEFAULT ')


def test_a_socket_folder_must_be_short_and_plain() -> None:
    name = len("/.s.PGSQL.5432")

    assert fits(Path("/" + "a" * (LONGEST_SOCKET_PATH - name - 1)))
    assert not fits(Path("/" + "a" * (LONGEST_SOCKET_PATH - name)))
    assert not fits(Path("/it's"))
    assert not fits(Path("/with,comma"))
    assert not fits(Path("/é"))
