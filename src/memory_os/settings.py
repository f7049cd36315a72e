"""The settings of the service: one frozen model, read from the environment and `.env`.

The table in `docs/operating/settings.md` is generated from this model.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from memory_os.errors import StartupError


class Settings(BaseSettings):
    """Every setting of the service; the name in capitals is the environment variable."""

    model_config = SettingsConfigDict(env_file=".env", extra="forbid", frozen=True, env_ignore_empty=True)

    # --- stores
    database_url: SecretStr | None = Field(
        None, description="Postgres of the service, with a plain role: memory_os_app, or one that may become it."
    )
    worker_database_url: SecretStr | None = Field(
        None, description="Postgres for workers (memory_os_worker, or a role that may become it); default DATABASE_URL."
    )
    owner_database_url: SecretStr | None = Field(
        None, description="Postgres for `memory-os migrate`: may create roles and tables; default DATABASE_URL."
    )
    database_pool_size: int = Field(10, ge=1, le=200, description="Connections that one process keeps at most.")
    database_prepare: bool = Field(
        True, description="Prepared statements; set to false behind PgBouncer in transaction mode."
    )
    memory_os_home: Path = Field(Path(".memory-os"), description="Where `memory-os up` keeps its stores and files.")

    # --- graph
    enable_graph_memory: bool = Field(False, description="Enqueue graph events, project them and use the graph.")
    graph_backend: Literal["networkx", "falkor"] = Field("networkx", description="Where the graph lives.")
    graph_dir: Path = Field(Path(".memory-os/graph"), description="Folder of the networkx backend.")
    falkor_host: str = Field("127.0.0.1", description="Host of FalkorDB.")
    falkor_port: int = Field(6379, ge=1, le=65535, description="Port of FalkorDB.")
    falkor_username: str | None = Field(None, description="User of FalkorDB, where its users have names.")
    falkor_password: SecretStr | None = Field(None, description="Password of FalkorDB.")
    falkor_tls: bool = Field(False, description="Reach FalkorDB over TLS.")
    graph_prefix: str = Field(
        "memory_os", pattern=r"^[A-Za-z0-9_-]{1,64}$", description="First part of each graph key."
    )

    # --- embedding
    embedding_provider: Literal["bundled", "http", "deterministic-for-tests"] = Field(
        "bundled", description="Who makes vectors: the bundled model, an OpenAI-compatible endpoint, or a test double."
    )
    embedding_url: str | None = Field(None, description="Base URL of the endpoint, for EMBEDDING_PROVIDER=http.")
    embedding_api_key: SecretStr | None = Field(None, description="Key of the endpoint.")
    embedding_model: str | None = Field(None, description="Model that the endpoint is asked for.")
    embedding_dimension: int | None = Field(None, ge=1, le=4096, description="Dimension, where it can't be probed.")
    embedding_timeout_s: float = Field(10.0, gt=0, description="Seconds for one call to the endpoint.")
    memory_os_allow_test_embedder: bool = Field(
        False, description="Needed beside EMBEDDING_PROVIDER=deterministic-for-tests; never set it in production."
    )

    # --- rerank and packing
    rerank: Literal["off", "maxsim", "endpoint"] = Field(
        "off",
        description="What ranks the best records of an answer anew: nothing, the bundled model by its tokens, or an "
        "endpoint. A question may go without.",
    )
    rerank_weight: float | None = Field(
        None,
        ge=0,
        le=100,
        description="What the new order counts beside the one that was found; default: 0.3 for maxsim, 1 for endpoint.",
    )
    rerank_budget_ms: int = Field(
        250, ge=10, le=10_000, description="Milliseconds that a question waits for token vectors, for RERANK=maxsim."
    )
    rerank_cache_mb: int = Field(
        256, ge=1, le=65_536, description="Megabytes of token vectors that are kept for one tenant."
    )
    rerank_url: str | None = Field(None, description="Base URL of the endpoint, for RERANK=endpoint.")
    rerank_api_key: SecretStr | None = Field(None, description="Key of the rerank endpoint.")
    rerank_model: str | None = Field(None, description="Model that the rerank endpoint is asked for.")
    rerank_timeout_s: float = Field(2.0, gt=0, le=60, description="Seconds that a question waits for the endpoint.")
    token_counter: str = Field(
        "estimate",
        min_length=1,
        description="What a pack's budget counts with: `estimate`, `tiktoken:` with an encoding (needs the package, "
        "which fetches its tables at first use), or `module:function` of your own, from a text to its tokens.",
    )

    # --- summaries
    summary_url: str | None = Field(
        None,
        description="Base URL of an OpenAI-compatible endpoint that puts proposed Insights into words; it is sent the "
        "texts of memories. Unset: they are in sentences of their members.",
    )
    summary_api_key: SecretStr | None = Field(None, description="Key of the endpoint for summaries.")
    summary_model: str | None = Field(None, description="Model that the endpoint for summaries is asked for.")
    summary_timeout_s: float = Field(30.0, gt=0, le=600, description="Seconds for one summary.")

    # --- dedup gate
    dedup_recent: float | None = Field(
        None, ge=0, le=1, description="Similarity that nominates a memory of the past hour; default: the embedder's."
    )
    dedup_older: float | None = Field(
        None, ge=0, le=1, description="Similarity that nominates an older memory; default: the embedder's."
    )
    dedup_review: float | None = Field(
        None, ge=0, le=1, description="Similarity under which pairs are taken for distinct; default: the embedder's."
    )

    # --- worker
    worker_batch_size: int = Field(200, ge=1, le=1000, description="Events that a worker claims at once.")
    worker_poll_s: float = Field(5.0, gt=0, le=60, description="Seconds between polls when no notification comes.")
    worker_lease_s: float = Field(30.0, gt=1, le=600, description="Seconds after which a silent worker's work is free.")
    worker_concurrency: int = Field(2, ge=1, le=32, description="Tenants that one worker projects at the same time.")
    outbox_max_attempts: int = Field(5, ge=5, le=5, description="Attempts before an event is dead (fixed at five).")
    outbox_backoff_base_s: float = Field(2.0, gt=0, le=60, description="First bound of the full-jitter backoff.")
    outbox_backoff_cap_s: float = Field(300.0, gt=0, le=3600, description="Largest bound of the backoff.")
    outbox_retention_h: float = Field(24.0, gt=0, description="Hours that done events are kept.")
    graph_verify_every_h: float = Field(
        24.0, ge=0, description="Hours after which a graph is compared with its canonical rows again; 0 is never."
    )
    outbox_ready_max_age_s: float = Field(
        900.0,
        gt=0,
        description="Seconds that the oldest waiting event may be old before /readyz says not ready.",
    )
    vector_index_from: int = Field(
        10_000,
        ge=100,
        description="Vectors that a whole tenant may read, above which a worker builds an index of them.",
    )
    vector_index_tail: int = Field(
        1_000, ge=1, description="Vectors that may wait for a tenant's index, each of which every search measures."
    )
    vector_index_memory_mb: int = Field(
        512, ge=16, le=65_536, description="Memory of a build in Postgres; 200,000 vectors of 384 numbers take 300 MB."
    )
    retrieval_retention_d: float = Field(30.0, gt=0, description="Days that the retrieval log is kept.")
    reinforce_unconfirmed_share: float = Field(
        0.25, ge=0, le=1, description="Share of the retrievals without feedback that may reinforce the edges they used."
    )
    idempotency_retention_h: float = Field(24.0, gt=0, description="Hours that an idempotency key is remembered.")

    # --- api
    host: str = Field("127.0.0.1", description="Address that the API listens on.")
    port: int = Field(8080, ge=0, le=65535, description="Port that the API listens on; 0 takes a free one.")
    max_body_bytes: int = Field(16 * 1024 * 1024, ge=1024, description="Largest request body.")
    max_text_chars: int = Field(32_768, ge=100, le=1_000_000, description="Longest text of one memory.")
    max_batch_items: int = Field(1000, ge=1, le=10_000, description="Most items of one batch.")
    rate_limit_per_minute: int = Field(60_000, ge=0, description="Requests of one tenant a minute; 0 is no limit.")
    console_secret: SecretStr | None = Field(
        None, description="Key of the console's session cookies; default: a new one at each start."
    )
    console_cookie_secure: bool = Field(
        False, description="Send the console's cookie over HTTPS only; set it wherever TLS ends before the service."
    )

    # --- logs
    log_format: Literal["auto", "json", "console"] = Field("auto", description="auto: readable on a terminal only.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is logged.")

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.embedding_provider == "http" and not self.embedding_url:
            raise ValueError("EMBEDDING_PROVIDER=http needs EMBEDDING_URL")
        if self.embedding_provider == "deterministic-for-tests" and not self.memory_os_allow_test_embedder:
            raise ValueError(
                "EMBEDDING_PROVIDER=deterministic-for-tests is for tests only; unset it, or set "
                "MEMORY_OS_ALLOW_TEST_EMBEDDER=1 in a test"
            )
        if self.rerank == "endpoint" and not (self.rerank_url and self.rerank_model):
            raise ValueError("RERANK=endpoint needs RERANK_URL and RERANK_MODEL")
        if self.summary_url and not self.summary_model:
            raise ValueError("SUMMARY_URL needs SUMMARY_MODEL")
        return self

    def service_url(self) -> str:
        """The URL that the API connects with.

        Raises:
            StartupError: If DATABASE_URL is unset.
        """
        if self.database_url is None:
            raise StartupError("DATABASE_URL is unset: set it, or run `memory-os up` for the embedded stores")
        return self.database_url.get_secret_value()

    def worker_url(self) -> str:
        """The URL that workers connect with."""
        chosen = self.worker_database_url
        return chosen.get_secret_value() if chosen else self.service_url()

    def owner_url(self) -> str:
        """The URL that migrations connect with."""
        chosen = self.owner_database_url
        return chosen.get_secret_value() if chosen else self.service_url()


@lru_cache(maxsize=1)
def load_settings() -> Settings:
    """Read the settings once.

    Raises:
        StartupError: With one line a fault, if a setting is unknown, malformed or contradictory.
    """
    try:
        return Settings()
    except ValidationError as error:
        lines = [
            f"{'.'.join(str(part) for part in fault['loc']).upper() or 'settings'}: {fault['msg']}"
            for fault in error.errors()
        ]
        raise StartupError("; ".join(lines)) from None
