"""Stores filled with the corpora through the API, which may be kept from run to run."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
from embedders import VECTORS
from quality_sets import Corpus
from stack import Stores, add_tenants, add_token, service, stores, wait_until

ROOT = Path(__file__).parents[1]
PASSAGES = 100
"""Passages or memories of one call: their texts are embedded in one go."""

SHAPES = (
    "alembic/**/*.py",
    "alembic/**/*.sql",
    "src/memory_os/storage/sql/store_*.sql",
    "src/memory_os/storage/sql/insert_*.sql",
    "src/memory_os/projection/*.py",
    "src/memory_os/memories/writing.py",
    "src/memory_os/sources/*.py",
    "src/memory_os/domain/search_text.py",
    "src/memory_os/domain/extraction.py",
    "src/memory_os/domain/titles.py",
    "src/memory_os/domain/stop_words.py",
    "src/memory_os/domain/capitals.py",
    "src/memory_os/domain/weights.py",
)
"""What decides how records are stored: kept stores are filled anew when one of these files has changed."""

SERVICE = {
    "EMBEDDING_PROVIDER": "bundled",
    "MEMORY_OS_ALLOW_TEST_EMBEDDER": "0",
    "RERANK": "maxsim",
    "RERANK_BUDGET_MS": "10000",
}
"""Settings of the service: the bundled model, and a rerank for those questions that ask for it.

Token vectors get all the time they need: what is measured should not depend on how busy the machine is.
"""


class Home:
    """The folder of the stores, of the vectors, and of what is known of the tenants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stores = folder / f"stores-{shape()}"
        self._tenants = self.stores / "tenants.json"

    @property
    def vectors(self) -> Path:
        """The file of the vectors."""
        return self.folder / "vectors.sqlite"

    def clear(self, *, everything: bool) -> None:
        """Drop stores that were filled by another version of the product, or all."""
        for old in self.folder.glob("stores-*"):
            if everything or old != self.stores:
                shutil.rmtree(old, ignore_errors=True)

    def token(self, corpus: Corpus) -> str | None:
        """The token of the corpus' tenant, if it is filled."""
        known = self._read().get(corpus.name)
        return known["token"] if known and known["digest"] == corpus.digest else None

    def remember(self, corpus: Corpus, token: str) -> None:
        """A corpus has been filled."""
        self._tenants.write_text(
            json.dumps({**self._read(), corpus.name: {"token": token, "digest": corpus.digest}}, indent=1)
        )
        self._tenants.chmod(0o600)

    def _read(self) -> dict[str, dict[str, str]]:
        known: dict[str, dict[str, str]] = json.loads(self._tenants.read_text()) if self._tenants.exists() else {}
        return known


@contextmanager
def open_home(folder: Path | None, *, refill: bool) -> Iterator[Home]:
    """The folder given, or a temporary one."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="memory-os-quality-", dir="/tmp") as made:
            Path(made).chmod(0o711)
            yield Home(Path(made))
    else:
        folder.mkdir(parents=True, exist_ok=True)
        home = Home(folder.resolve())
        home.clear(everything=refill)
        yield home


def shape() -> str:
    """A digest of the files that decide how records are stored."""
    digest = hashlib.sha256()
    for pattern in SHAPES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@contextmanager
def filled(home: Home, corpora: Sequence[Corpus], settings: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The product on stores that hold the corpora.

    Yields:
        The API's address, and the token of each corpus' tenant.
    """
    command = [str(ROOT / "benchmarks" / "embedders.py")]
    given = {**SERVICE, **settings, VECTORS: str(home.vectors)}
    with stores(home.stores) as on, service(on, workers=1, command=command, **given) as address:
        tokens = {}
        for corpus in corpora:
            known = home.token(corpus)
            tokens[corpus.name] = known or make_tenant(on)
            if not known:
                fill(address, tokens[corpus.name], corpus)
                wait_until(lambda: settled(on), 3600, f"the projection of {corpus.name}", every_s=0.2)
                home.remember(corpus, tokens[corpus.name])
        with psycopg.connect(on.owner_url, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")
        for corpus in corpora:
            wait_for_graph(address, tokens[corpus.name], corpus.name)
        yield address, tokens


def make_tenant(on: Stores) -> str:
    """A new tenant; gives its token."""
    tenant_id = add_tenants(on, 1)[0]
    with psycopg.connect(on.owner_url) as connection:
        return add_token(connection, tenant_id)


def fill(address: str, token: str, corpus: Corpus) -> None:
    """Store a corpus through the API, with progress: embedding takes minutes."""
    started, done, told = time.perf_counter(), 0, 0.0
    with client(address, token) as api:
        for path, body, count in calls(corpus):
            answer = api.post(path, json=body)
            failed = not answer.is_success or any(one.get("error") for one in answer.json().get("results", ()))
            if failed:
                raise RuntimeError(f"{path} of {corpus.name}: {answer.status_code} {answer.text[:500]}")
            done += count
            seconds = time.perf_counter() - started
            if seconds - told > 10 or done == len(corpus.documents):
                told = seconds
                print(
                    f"{corpus.name}: stored {done} of {len(corpus.documents)}, {done / seconds:.0f} a second",
                    flush=True,
                )


def calls(corpus: Corpus) -> Iterator[tuple[str, dict[str, Any], int]]:
    """The calls that store a corpus, and how many documents each brings. Nothing may merge, so the gate is off."""
    if corpus.form == "memories":
        for start in range(0, len(corpus.documents), PASSAGES):
            part = corpus.documents[start : start + PASSAGES]
            items = [
                {"id": str(corpus.ident(one.key)), "label": "Reference", "text": one.text, "dedup": "off"}
                | ({"title": one.title} if one.title else {})
                for one in part
            ]
            yield "/v1/memories/batch", {"items": items}, len(part)
    for session in corpus.sessions:
        passages = [
            {"id": str(corpus.ident(turn.key)), "text": turn.text, "locator": {"message_id": turn.key}}
            for turn in session.turns
        ]
        yield (
            "/v1/sources",
            {
                "id": str(corpus.ident(session.key)),
                "kind": "conversation",
                "title": session.title,
                "source_date": session.date.isoformat(),
                "passages": passages,
            },
            len(passages),
        )


def settled(on: Stores) -> bool:
    """Whether the graph has everything, and every text its vector."""
    with psycopg.connect(on.owner_url) as connection:
        row = connection.execute(
            "SELECT EXISTS (SELECT FROM outbox_events WHERE status <> 'done') "
            "OR EXISTS (SELECT FROM memories WHERE embedding_model IS NULL) "
            "OR EXISTS (SELECT FROM passages WHERE embedding_model IS NULL)"
        ).fetchone()
    return row == (False,)


def wait_for_graph(address: str, token: str, name: str) -> None:
    """Wait until answers say that the graph is current: stores that were stopped have theirs compared first."""

    def current() -> bool:
        body = {"query": "anything", "limits": {"memories": 1}}
        state: str = api.post("/v1/retrieve", json=body).raise_for_status().json()["graph"]["state"]
        return state == "current"

    with client(address, token) as api:
        try:
            wait_until(current, 300, f"the graph of {name}", every_s=0.5)
        except TimeoutError as error:
            print(f"WARNING: {error}; it is asked as it is", flush=True)


def client(address: str, token: str) -> httpx.Client:
    """A client that waits as long as it takes to embed a batch."""
    return httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=600)
