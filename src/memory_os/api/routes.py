"""The resources of version 1, one module each."""

from __future__ import annotations

from memory_os.api.audit import AuditController
from memory_os.api.edges import EdgeController
from memory_os.api.entities import EntityController
from memory_os.api.graph import GraphController
from memory_os.api.lifecycle import LifecycleController
from memory_os.api.memories import MemoryController
from memory_os.api.outbox import OutboxController
from memory_os.api.records import RECORD_CONTROLLERS
from memory_os.api.retrieval import RetrievalController
from memory_os.api.reviews import ReviewController
from memory_os.api.tenants import TenantController
from memory_os.api.tokens import TokenController
from memory_os.api.vocabulary import VocabularyController

V1_CONTROLLERS = (
    MemoryController,
    LifecycleController,
    ReviewController,
    EntityController,
    *RECORD_CONTROLLERS,
    EdgeController,
    VocabularyController,
    RetrievalController,
    GraphController,
    OutboxController,
    TenantController,
    TokenController,
    AuditController,
)
