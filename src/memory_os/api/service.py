"""`/livez`, `/readyz`, `/metrics`: what machines ask of the service."""

from __future__ import annotations

from typing import Any

import msgspec
from litestar import Request, Response, get
from litestar.openapi import ResponseSpec
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from memory_os.admin.health import queue_metrics, readiness


class Liveness(msgspec.Struct):
    """The process runs."""

    status: str = "ok"


@get("/livez", operation_id="livez", opt={"public": True}, tags=["service"], summary="The process runs")
async def livez() -> Liveness:
    """Answers while the event loop turns; asks nothing else."""
    return Liveness()


@get(
    "/readyz",
    operation_id="readyz",
    opt={"public": True},
    tags=["service"],
    summary="The service can serve",
    responses={
        503: ResponseSpec(dict[str, Any], description="Not ready, with the part that fails.", generate_examples=False)
    },
)
async def readyz(request: Request[Any, Any, Any]) -> Response[dict[str, Any]]:
    """200 when database and schema are there and the outbox moves; 503 with the failing part otherwise."""
    services = request.app.state.services
    ready, parts = await readiness(services.database, services.settings, services.graph)
    return Response({"ready": ready, **parts}, status_code=200 if ready else 503)


@get(
    "/metrics",
    operation_id="metrics",
    opt={"public": True},
    tags=["service"],
    summary="Prometheus metrics",
    media_type=CONTENT_TYPE_LATEST,
)
async def metrics(request: Request[Any, Any, Any]) -> Response[bytes]:
    """This process's metrics, and the queue's gauges computed from the table at this moment."""
    body = generate_latest() + await queue_metrics(request.app.state.services.database)
    return Response(body)
