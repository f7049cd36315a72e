"""What the API's calls are served with: built once by `memory_os.app`, handed to every call."""

from __future__ import annotations

from dataclasses import dataclass

from memory_os.embedding.port import Embedder
from memory_os.graph.facade import GraphMemory
from memory_os.memories.service import MemoryService
from memory_os.outbox.events import Outbox
from memory_os.retrieval.service import Retriever
from memory_os.settings import Settings
from memory_os.storage.database import Database


@dataclass(frozen=True, slots=True)
class Services:
    """The parts that calls are served with. `graph` is None while graph memory is off."""

    settings: Settings
    database: Database
    embedder: Embedder
    outbox: Outbox
    memories: MemoryService
    graph: GraphMemory | None
    retriever: Retriever
