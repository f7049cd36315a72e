"""`/v1/memories/{id}/provenance`, `.../retrievals`: where a memory comes from, and where it was used."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from litestar import Controller, get
from litestar.params import FromPath

from memory_os.api.calls import Call
from memory_os.api.parameters import CURSOR, LIMIT, Limit
from memory_os.domain.shapes import Cursor
from memory_os.memories.provenance import read_provenance
from memory_os.memories.provenance_model import Provenance
from memory_os.memories.usage import Use, list_uses
from memory_os.storage.pages import Page


class ProvenanceController(Controller):
    """Where memories come from, and where they were used."""

    path = "/v1/memories/{memory_id:uuid}"
    tags = ["memories"]  # noqa: RUF012 - Litestar reads it from the class

    @get(
        "/provenance",
        operation_id="getMemoryProvenance",
        opt={"permission": "read"},
        summary="Where a memory comes from",
    )
    async def provenance(self, memory_id: FromPath[UUID], call: Call) -> Provenance:
        """Tell the whole story of a memory: who recorded it, its sources with quotes, and all that happened to it."""
        return await call.read(lambda tx: read_provenance(tx, call.principal, memory_id))

    @get(
        "/retrievals",
        operation_id="listMemoryRetrievals",
        opt={"permission": "read"},
        summary="Where a memory was used",
    )
    async def retrievals(
        self,
        memory_id: FromPath[UUID],
        call: Call,
        cursor: Annotated[Cursor | None, CURSOR] = None,
        limit: Annotated[Limit, LIMIT] = 50,
    ) -> Page[Use]:
        """List the retrievals that found a memory, newest first.

        Readers and writers see their own. Reviewers see all, without what others asked; operators and admins all.
        """
        return await call.read(lambda tx: list_uses(tx, call.principal, memory_id, cursor, limit))
