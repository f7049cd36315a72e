"""Stages for random histories: one for each backend and test process, on stores that every history shares."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
import structlog
from tests.fixtures.falkor import FalkorProcess
from tests.fixtures.postgres import DatabaseUrls, clone_database
from tests.property.stages import Stage, open_stage

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.embedded.postgres import EmbeddedPostgres
from memory_os.graph.falkor import FalkorBackend
from memory_os.graph.falkor_server import FalkorAddress
from memory_os.graph.networkx import NetworkxBackend
from memory_os.projection import verifier

_EDGE_TYPES = frozenset(EDGE_TYPES)


@pytest.fixture(scope="session")
def history_urls(postgres_server: EmbeddedPostgres, template_database: str) -> Iterator[DatabaseUrls]:
    """The database of all histories of this process."""
    yield from clone_database(postgres_server, template_database)


@pytest.fixture(scope="session")
def networkx_stage(history_urls: DatabaseUrls) -> Iterator[Stage]:
    """Histories on the in-process backend."""
    with (
        TemporaryDirectory() as directory,
        open_stage(history_urls, lambda: NetworkxBackend(Path(directory), edge_types=_EDGE_TYPES)) as stage,
    ):
        yield stage


@pytest.fixture(scope="session")
def falkor_stage(history_urls: DatabaseUrls, falkor_server: FalkorProcess) -> Iterator[Stage]:
    """Histories on FalkorDB."""
    address = FalkorAddress(falkor_server.host, falkor_server.port)
    prefixes = (f"histories_{number}" for number in count())
    prefix = next(prefixes)
    with open_stage(history_urls, lambda: FalkorBackend(address, prefix=prefix, edge_types=_EDGE_TYPES)) as stage:
        yield stage


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """The stage of the backend that the test is run for; what the service logs of a thousand histories is left out."""
    chosen: Stage = request.getfixturevalue(f"{request.param}_stage")
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with patch.object(verifier, "PAUSES_S", (0.0, 0.0)):  # nobody projects while a repair waits: one loop, one task
        yield chosen
    structlog.configure(**before)
