"""`GET /v1/users/{user}`: all that belongs to a user, as lines of JSON."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import unquote

from litestar import Controller, Request, get
from litestar.params import FromPath, PathParameter
from litestar.response import Stream

from memory_os.api.calls import ActiveCall, Call
from memory_os.domain.principal import Principal
from memory_os.domain.shapes import USER_PATTERN
from memory_os.transfer.user_export import begin_user_export, user_lines

NDJSON: Final = "application/x-ndjson"
_USERS: Final = "/v1/users/"
_USER: Final = PathParameter(
    min_length=1, max_length=200, pattern=USER_PATTERN, description="The user, as tokens and headers name them."
)


class UserExportController(Controller):
    """What the service holds of a user."""

    path = "/v1/users"
    tags = ["admin"]  # noqa: RUF012 - Litestar reads it from the class

    @get(
        "/{user:str}",
        operation_id="exportUser",
        opt={"permission": "admin"},
        media_type=NDJSON,
        summary="Export what belongs to a user",
    )
    async def export(self, user: Annotated[str, _USER], call: Call) -> Stream:
        """Send the user's memories, sources, entities and records, their evidence, acts, questions and feedback.

        Lines of JSON, a header first. The last line has the SHA-256 of all others: without it the answer was cut off.
        """
        return await _export(call, user)

    @get("/{user:str}/{rest:path}", opt={"permission": "admin"}, media_type=NDJSON, include_in_schema=False)
    async def export_with_slash(
        self, user: FromPath[str], rest: FromPath[str], call: Call, request: Request[Principal, str, Any]
    ) -> Stream:
        """The same for a name with an encoded slash in it, which the server has decoded before routes are looked up."""
        raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
        return await _export(call, unquote(raw.decode("ascii", "replace").partition(_USERS)[2]))


async def _export(call: ActiveCall, user: str) -> Stream:
    async def work(tx: Any) -> None:  # noqa: ANN401 - Transaction, which Litestar must not resolve
        await begin_user_export(tx, call.principal, user, call.request_id)

    await call.read(work)
    return Stream(user_lines(call.services.database, call.principal, user), media_type=NDJSON)
