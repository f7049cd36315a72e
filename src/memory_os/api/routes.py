"""The resources of version 1, one module each."""

from __future__ import annotations

from memory_os.api.audit import AuditController
from memory_os.api.corrections import CorrectionController
from memory_os.api.cycles import CycleController
from memory_os.api.edges import EdgeController
from memory_os.api.entities import EntityController
from memory_os.api.entity_merging import EntityMergingController
from memory_os.api.erasure import ErasureController
from memory_os.api.evidence import EvidenceController
from memory_os.api.graph import GraphController
from memory_os.api.lifecycle import LifecycleController
from memory_os.api.memories import MemoryController
from memory_os.api.outbox import OutboxController
from memory_os.api.provenance import ProvenanceController
from memory_os.api.records import RECORD_CONTROLLERS
from memory_os.api.retrieval import RetrievalController
from memory_os.api.reviews import ReviewController
from memory_os.api.sources import SourceController
from memory_os.api.structure import ChangesController, EntityStructureController, MemoryStructureController
from memory_os.api.tenants import TenantController
from memory_os.api.tokens import TokenController
from memory_os.api.transfer import UserExportController
from memory_os.api.vocabulary import VocabularyController

V1_CONTROLLERS = (
    MemoryController,
    LifecycleController,
    ProvenanceController,
    CorrectionController,
    ReviewController,
    SourceController,
    EvidenceController,
    EntityController,
    EntityMergingController,
    *RECORD_CONTROLLERS,
    EdgeController,
    VocabularyController,
    RetrievalController,
    EntityStructureController,
    MemoryStructureController,
    ChangesController,
    CycleController,
    GraphController,
    OutboxController,
    TenantController,
    TokenController,
    UserExportController,
    AuditController,
    ErasureController,
)
