"""What an import refuses: one line that names the fault and where it is, and nothing of the file in the tenant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.fixtures.acting import rows_of
from tests.fixtures.postgres import DatabaseUrls
from tests.fixtures.service import TenantFactory, TestTenant
from tests.integration.transfer.conftest import Import, counts, seal

from memory_os.domain.ids import derived_entity_id
from memory_os.errors import StartupError

pytestmark = pytest.mark.anyio

READERS = {"visibility": "tenant", "user_id": None, "reader_users": [], "reader_groups": []}
TIMES = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z", "version": 1}
IDS = [UUID(int=number + 2**100) for number in range(10)]
Lines = list[bytes]
Change = Callable[[Lines], bytes]


def memory(number: int, **fields: Any) -> dict[str, Any]:
    text = f"Memory {number} of the file."
    given = {"label": "Attribute", "layer": "identity", "status": "active", "text": text, "tags": [], "metadata": {}}
    return {"id": str(IDS[number]), **given, "confidence": 0.5, **READERS, **TIMES, **fields}


def line(kind: str, record: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"type": kind, "record": record, **more}).encode() + b"\n"


def header(counted: dict[str, int], **fields: Any) -> bytes:
    first = {"format": "memory-os", "version": 1, "schema": "0008", "tenant": {"name": "North", "time_zone": "UTC"}}
    return json.dumps({**first, "exported_at": "2026-01-01T00:00:00Z", "counts": counted, **fields}).encode() + b"\n"


def good() -> Lines:
    """A header and three memories."""
    return [header({"memory": 3}), *(line("memory", memory(number)) for number in range(3))]


def third(**fields: Any) -> Change:
    """Three memories, the last of which is another one."""
    return lambda lines: seal([*lines[:3], line("memory", memory(2, **fields))])


def instead(*given: bytes) -> Change:
    """Two memories and something else."""
    return lambda lines: seal([*lines[:3], *given])


def starting(**fields: Any) -> Change:
    return lambda lines: seal([header({"memory": 3}, **fields), *lines[1:]])


def derived(name: str, ident: UUID) -> bytes:
    entity = {"id": str(ident), "declared": False, "name": name, "entity_type": "unknown", "aliases": [], "payload": {}}
    more = {"confidence": 1, "status": "active", **READERS, **TIMES}
    return line("entity", entity | more, derived={str(ident): "mill lane"})


MILL = derived_entity_id(UUID(int=0), "mill lane")
ENDS = {"source_memory_id": str(IDS[0]), "target_memory_id": str(IDS[9])}
EDGE = {"id": str(IDS[5]), "type": "SUPPORTS", "confidence": 0.5, "co_reference_count": 0, **TIMES, **ENDS}
CASES: dict[str, tuple[Change, str]] = {
    "empty": (lambda _: b"", "line 1: the file is empty"),
    "no JSON": (lambda _: b"hello\n", "line 1: JSON is malformed"),
    "another format": (starting(format="other"), "line 1: the format is 'other'"),
    "a newer version": (starting(version=2), "line 1: the file is of version 2 and schema 0008"),
    "a newer schema": (starting(schema="9999"), "line 1: .* schema 9999, .* or a newer one"),
    "of one user": (starting(user="ann"), "line 1: this is the export of one user"),
    "an unknown field in the header": (starting(colour="red"), "line 1: .*unknown field `colour`"),
    "an unknown type": (instead(line("idea", memory(2))), "line 4: there is no type 'idea'; the types are source, "),
    "an unknown column": (third(colour="red"), "line 4: a memory has no colour"),
    "another tenant": (third(tenant_id=str(uuid4())), "line 4: a memory has no tenant_id"),
    "an unknown field beside the record": (instead(line("memory", memory(2), x=1)), "line 4: .*unknown field `x`"),
    "no id": (instead(line("memory", {"text": "x"})), "line 4: a memory needs an id"),
    "an id that is none": (third(id="x"), "line 4: .*UUID"),
    "torn in a line": (lambda lines: b"".join(lines)[:-20], "line 4: Input data was truncated"),
    "torn between lines": (lambda lines: b"".join(lines[:3]), "line 4: the file is torn"),
    "no trailer": (b"".join, "line 5: the file is torn"),
    "changed": (lambda lines: seal(lines).replace(b"Memory 1", b"memory 1"), "line 5: the file was changed or torn"),
    "a line taken out": (lambda lines: seal(lines).replace(lines[2], b""), "line 4: the file was changed or torn"),
    "fewer than it says": (lambda lines: seal(lines[:3]), "line 4: the file does not hold as many records as it says"),
    "two files in one": (lambda lines: seal(lines) * 2, "line 6: something follows the last line"),
    "a confidence of 2": (
        third(confidence=2),
        f"line 4: the memory {IDS[2]} breaks the rule memories_confidence_check",
    ),
    "an unknown label": (third(label="Idea"), "line 4: .* breaks the rule memories_label_check"),
    "without a text": (third(text=None), "line 4: .* lacks text"),
    "a time that is none": (third(valid_from="soon"), 'line 4: .* can\'t be stored: .*"soon"'),
    "NUL in a text": (third(text="a\x00b"), "line 4: .* can't be stored: "),
    "a lone surrogate": (third(title="\ud800"), "line 4: "),
    "replaced by nothing": (
        third(superseded_by=str(IDS[9])),
        "line 4: .* names a record that is neither in the tenant",
    ),
    "the same words under two ids": (
        lambda lines: seal(
            [lines[0], *(line("memory", memory(n, text="Twice.", exact_key="\\x" + "00" * 16)) for n in range(3))]
        ),
        "line 3: .* is in the tenant under another id .memories_exact",
    ),
    "two contents under one id": (
        lambda lines: seal([*lines[:3], line("memory", memory(1, title="Another"))]),
        f"line 4: the tenant has the memory {IDS[1]} with other content",
    ),
    "an edge to nowhere": (
        lambda lines: seal([header({"memory": 2, "edge": 1}), *lines[1:3], line("edge", EDGE)]),
        f"line 4: the edge {IDS[5]} names a record that is neither",
    ),
    "a derived entity of another name": (
        instead(derived("Harbour", MILL)),
        "line 4: the derived entity .* another name",
    ),
    "a derived entity under an id of its own": (
        instead(derived("Mill Lane", IDS[6])),
        f"line 4: the entity {IDS[6]} has its id from another name than 'mill lane'",
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_a_bad_file_is_refused_whole(
    case: str, tenant: TestTenant, bring_in: Import, database_urls: DatabaseUrls, tmp_path: Path
) -> None:
    change, fault = CASES[case]
    path = tmp_path / "file.jsonl"
    path.write_bytes(change(good()))
    with pytest.raises(StartupError, match=fault) as refused:
        await bring_in(tenant, path)
    assert str(refused.value).endswith("nothing was imported")
    assert "\n" not in str(refused.value)
    assert set(counts(database_urls, tenant.tenant_id).values()) == {0}
    events = "SELECT count(*) AS n FROM outbox_events UNION ALL SELECT count(*) FROM audit_log"
    assert [row["n"] for row in rows_of(database_urls, events)] == [0, 0]


async def test_the_file_that_the_bad_ones_are_made_of_is_good(
    tenant: TestTenant, bring_in: Import, database_urls: DatabaseUrls, tmp_path: Path
) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(seal([*good(), derived("Mill  Lane", MILL)], counts={"memory": 3}))
    with pytest.raises(StartupError, match="as many records as it says"):
        await bring_in(tenant, path)
    lines = [header({"memory": 3, "entity": 1}), *good()[1:], derived("Mill Lane", MILL)]
    path.write_bytes(seal(lines))
    told = await bring_in(tenant, path)
    assert told[0] == "4 records imported: memory 3, entity 1"
    found = rows_of(database_urls, "SELECT id, declared FROM entities")
    assert found == [{"id": derived_entity_id(tenant.tenant_id, "mill lane"), "declared": False}]
    assert [row["text"] for row in rows_of(database_urls, "SELECT text FROM memories ORDER BY id")] == [
        memory(number)["text"] for number in range(3)
    ]


async def test_what_is_there_with_other_content_stops_it(
    tenant: TestTenant, bring_in: Import, database_urls: DatabaseUrls, tmp_path: Path
) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(seal(good()))
    await bring_in(tenant, path)
    path.write_bytes(
        seal([header({"memory": 2}), line("memory", memory(5)), line("memory", memory(1, confidence=0.6))])
    )
    with pytest.raises(StartupError, match=f"line 3: the tenant has the memory {IDS[1]} with other content"):
        await bring_in(tenant, path)
    assert counts(database_urls, tenant.tenant_id)["memories"] == 3


async def test_a_tenant_has_to_be_there(tenant_factory: TenantFactory, bring_in: Import, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(seal(good()))
    for ident in (uuid4(), UUID(int=0)):
        stranger = TestTenant(ident, tenant_factory().owner_url)
        with pytest.raises(StartupError, match=f"there is no tenant {ident}: make one with `memory-os tenant create"):
            await bring_in(stranger, path)


def _environment(urls: DatabaseUrls) -> dict[str, str]:
    given = {"OWNER_DATABASE_URL": urls.owner_url, "DATABASE_URL": urls.app_url}
    test = {"EMBEDDING_PROVIDER": "deterministic-for-tests", "MEMORY_OS_ALLOW_TEST_EMBEDDER": "1"}
    return {**os.environ, **given, **test}


def test_the_command_line_exits_with_2_and_one_line(
    tenant: TestTenant, database_urls: DatabaseUrls, tmp_path: Path
) -> None:
    bad = seal(good()).replace(b"Memory 1", b"memory 1")
    command = [sys.executable, "-m", "memory_os", "import", "--tenant", str(tenant.tenant_id), "--from", "-"]
    env = _environment(database_urls)
    refused = subprocess.run(command, input=bad, env=env, cwd=tmp_path, capture_output=True, check=False)
    assert refused.returncode == 2
    assert refused.stderr.decode().splitlines()[-1].startswith("memory-os: line 5: the file was changed or torn")
    assert b"Traceback" not in refused.stderr
    accepted = subprocess.run(command, input=seal(good()), env=env, cwd=tmp_path, capture_output=True, check=False)
    assert accepted.returncode == 0, accepted.stderr.decode()
    assert b"3 records imported: memory 3" in accepted.stderr
    export = [sys.executable, "-m", "memory_os", "export", "--tenant", str(tenant.tenant_id), "--to", "-"]
    shown = subprocess.run(export, env=env, cwd=tmp_path, capture_output=True, check=True)
    assert [json.loads(text)["type"] for text in shown.stdout.splitlines()[1:]] == ["memory"] * 3 + ["end"]
    absent = [*export[:-3], str(uuid4()), "--to", str(tmp_path / "none.jsonl")]
    failed = subprocess.run(absent, env=env, cwd=tmp_path, capture_output=True, check=False)
    assert failed.returncode == 2
    assert not list(tmp_path.glob("*none*"))
