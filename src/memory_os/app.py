"""Composition: builds the parts from the settings, and the ASGI application around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.exceptions import HTTPException

from memory_os.api import problems
from memory_os.api.authentication import TokenMiddleware, require_permission
from memory_os.api.bodies import JsonRequest, refuse_other_media_types
from memory_os.api.calls import provide_call
from memory_os.api.document import make_config
from memory_os.api.envelope import TenantRate, refuse_unknown_parameters, request_envelope
from memory_os.api.reference import assets_router
from memory_os.api.routes import V1_CONTROLLERS
from memory_os.api.service import livez, metrics, readyz
from memory_os.api.services import Services
from memory_os.domain.edge_types import EDGE_TYPES
from memory_os.embedding.bundled import BundledEmbedder
from memory_os.embedding.factory import make_embedder
from memory_os.embedding.port import Embedder
from memory_os.errors import MemoryOSError, StartupError
from memory_os.graph.facade import GraphMemory, make_backend
from memory_os.memories.gate import Gate
from memory_os.memories.service import MemoryService
from memory_os.outbox.events import Outbox
from memory_os.reranking.factory import make_endpoint
from memory_os.reranking.port import RerankSettingsError
from memory_os.retrieval.reranking import Reranking
from memory_os.retrieval.service import Retriever
from memory_os.retrieval.token_counters import load_counter
from memory_os.retrieval.token_scoring import TokenScorer
from memory_os.settings import Settings
from memory_os.storage.checks import check_database, check_embedder
from memory_os.storage.database import Database
from memory_os.writing.factory import make_writer
from memory_os.writing.port import SummaryWriter, WriterSettingsError


def build_embedder(settings: Settings) -> Embedder:
    """The embedder that the settings name; not opened yet."""
    key = settings.embedding_api_key
    return make_embedder(
        settings.embedding_provider,
        url=settings.embedding_url,
        api_key=key.get_secret_value() if key else None,
        model=settings.embedding_model,
        dimension=settings.embedding_dimension,
        timeout=settings.embedding_timeout_s,
        allow_deterministic=settings.memory_os_allow_test_embedder,
    )


def build_graph(settings: Settings) -> GraphMemory | None:
    """The graph that the settings name, not opened yet; None while graph memory is off."""
    if not settings.enable_graph_memory:
        return None
    password = settings.falkor_password
    backend = make_backend(
        settings.graph_backend,
        edge_types=frozenset(EDGE_TYPES),
        directory=settings.graph_dir,
        host=settings.falkor_host,
        port=settings.falkor_port,
        username=settings.falkor_username,
        password=password.get_secret_value() if password else None,
        tls=settings.falkor_tls,
        prefix=settings.graph_prefix,
    )
    return GraphMemory(backend)


def build_gate(settings: Settings) -> Gate:
    """The dedup gate, with the embedder's own thresholds unless the settings name others."""
    return Gate(settings.dedup_recent, settings.dedup_older, settings.dedup_review)


def build_reranking(settings: Settings, database: Database, embedder: Embedder) -> Reranking | None:
    """What ranks answers anew; None where it is off.

    Raises:
        StartupError: If the settings name no reranker that can work.
    """
    if settings.rerank == "off":
        return None
    if settings.rerank == "endpoint":
        key = settings.rerank_api_key
        try:
            endpoint = make_endpoint(
                url=settings.rerank_url,
                model=settings.rerank_model,
                api_key=key.get_secret_value() if key else None,
                timeout=settings.rerank_timeout_s,
            )
        except RerankSettingsError as error:
            raise StartupError(str(error)) from None
        return Reranking(endpoint, settings.rerank_weight)
    scorer = TokenScorer(
        database,
        # Another embedder than the bundled one says nothing of tokens: the model is then loaded for them alone.
        embedder if isinstance(embedder, BundledEmbedder) else None,
        budget_s=settings.rerank_budget_ms / 1000,
        most_bytes=settings.rerank_cache_mb * 1024 * 1024,
    )
    return Reranking(scorer, settings.rerank_weight)


def build_writer(settings: Settings) -> SummaryWriter | None:
    """What puts proposed Insights into words; None where they keep those of their members.

    Raises:
        StartupError: If the settings name no writer that can work.
    """
    key = settings.summary_api_key
    try:
        return make_writer(
            url=settings.summary_url,
            model=settings.summary_model,
            api_key=key.get_secret_value() if key else None,
            timeout=settings.summary_timeout_s,
        )
    except WriterSettingsError as error:
        raise StartupError(str(error)) from None


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Open everything that the API needs, checked; closed again at the end of the block.

    Raises:
        StartupError: If the service must not start.
    """
    async with AsyncExitStack() as stack:
        database = Database(
            settings.service_url(), pool_size=settings.database_pool_size, prepare=settings.database_prepare
        )
        stack.push_async_callback(database.close)
        await check_database(database, "memory_os_app")
        embedder = build_embedder(settings)
        stack.push_async_callback(embedder.close)
        await check_embedder(database, "memory_os_app", await embedder.open())
        graph = build_graph(settings)
        if graph is not None:
            await graph.backend.open()
            stack.push_async_callback(graph.backend.close)
        outbox = Outbox(enabled=settings.enable_graph_memory)
        memories = MemoryService(embedder, outbox, settings.max_text_chars, build_gate(settings))
        counter = load_counter(settings.token_counter)
        reranking = build_reranking(settings, database, embedder)
        if reranking is not None:
            stack.push_async_callback(reranking.close)
        retriever = Retriever(database, embedder, graph, reranking, counter)
        stack.push_async_callback(retriever.close)
        yield Services(settings, database, embedder, outbox, memories, graph, retriever)


def create_app(services: Services, *, console: Sequence[Any] = ()) -> Litestar:
    """The application that serves `services`.

    Args:
        services: Opened parts; the application does not close them.
        console: Route handlers of the console, mounted beside the API.
    """
    settings = services.settings
    api = Router(
        path="/",
        route_handlers=[*V1_CONTROLLERS],
        middleware=[TokenMiddleware],
        guards=[  # all of them asynchronous: a plain function would cost a hop to a thread each
            require_permission,
            TenantRate(settings.rate_limit_per_minute).check,
            refuse_unknown_parameters,
            refuse_other_media_types,
        ],
        request_class=JsonRequest,
        dependencies={"call": Provide(provide_call)},
        security=[{"token": []}],
    )
    app = Litestar(
        route_handlers=[api, livez, readyz, metrics, assets_router(), *console],
        exception_handlers={
            MemoryOSError: problems.on_memory_os_error,
            HTTPException: problems.on_http_exception,
            Exception: problems.on_exception,
        },
        openapi_config=make_config(),
        request_max_body_size=settings.max_body_bytes,
        logging_config=None,
        debug=False,
    )
    app.asgi_handler = request_envelope(app.asgi_handler)
    app.state.services = services
    return app
