"""`/v1/vocabulary`."""

from __future__ import annotations

import httpx
import pytest
from tests.fixtures.service import TestTenant

from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.domain.labels import LABELS

pytestmark = pytest.mark.anyio


async def test_the_vocabulary_serves_every_closed_list(client: httpx.AsyncClient, tenant: TestTenant) -> None:
    answer = await client.get("/v1/vocabulary", headers=tenant.headers("reader"))
    assert answer.status_code == 200
    served = answer.json()
    assert [label["name"] for label in served["labels"]] == list(LABELS)
    assert [layer["name"] for layer in served["layers"]] == ["identity", "direction", "intelligence", "world"]
    assert [edge["name"] for edge in served["edge_types"]] == list(EDGE_TYPES)
    assert {status for label in served["labels"] for status in label["statuses"]} == {
        status["name"] for status in served["statuses"]
    }
    assert {label["lifecycle"] for label in served["labels"]} == {term["name"] for term in served["lifecycles"]}
    assert {"name": "Fact", "instead": "Use Attribute."} in served["retired_labels"]
    assert "RELATES_TO" in {term["name"] for term in served["refused_edge_types"]}
    assert served["link_layers"] == ["entity", "memory", "observation", "procedure", "outcome", "source"]
    assert served["visibilities"] == ["tenant", "private", "restricted"]
    assert [term["name"] for term in served["entity_statuses"]] == ["active", "retired", "archived"]
    assert [term["name"] for term in served["record_statuses"]] == ["active", "archived"]
    assert (await client.get("/v1/vocabulary")).status_code == 401
