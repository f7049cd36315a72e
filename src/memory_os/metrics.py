"""Prometheus metrics of a process. Queue gauges are computed from the table when they are asked for, not here."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

REQUEST_SECONDS = Histogram(
    "memory_os_request_seconds",
    "Time to answer a request.",
    ["method", "route", "status"],
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
RETRIEVAL_SECONDS = Histogram(
    "memory_os_retrieval_seconds",
    "Time of one part of a retrieval.",
    ["part"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1),
)
EVENTS_PROJECTED = Counter("memory_os_events_projected_total", "Events that this worker finished.", ["outcome"])
PROJECTION_SECONDS = Histogram(
    "memory_os_projection_seconds",
    "Time of one part of projecting a batch.",
    ["part"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5),
)
REINFORCEMENTS = Counter(
    "memory_os_reinforcements_total", "Edges of answers that were settled: counted, or why not.", ["outcome"]
)
STALE_ACKS = Counter("memory_os_stale_acks_total", "Results that came after the lease was lost, and were dropped.")
