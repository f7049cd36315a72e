"""Request bodies: JSON, read strictly into the shape that a call declares."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
from litestar import Request
from litestar.connection import ASGIConnection
from litestar.exceptions import ClientException
from litestar.handlers.base import BaseRouteHandler
from litestar.status_codes import HTTP_415_UNSUPPORTED_MEDIA_TYPE

from memory_os.api.problems import field_error
from memory_os.errors import InvalidInputError

JSON: Final = ("application/json",)
LINES: Final = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl")
"""What JSON lines are called; none of the names is registered."""

BODY_TYPES: Final = "body_types"
"""Key in a handler's `opt`: the media types of a body that it reads by itself."""


class JsonRequest(Request[Any, Any, Any]):
    """A request whose body is decoded once, straight into the shape that its handler declares.

    Litestar would convert laxly: a text for a number, a number for a time. A batch is decoded item by item and
    strictly; the single calls must not accept what a batch refuses.
    """

    async def json(self) -> Any:  # noqa: ANN401 - as the base class has it
        """The decoded body.

        Raises:
            InvalidInputError: If it is JSON of another shape, with a pointer to the fault.
            ClientException: 400, if it is no JSON.
        """
        declared = self.route_handler.parsed_fn_signature.parameters.get("data")
        return decode_body(await self.body(), Any if declared is None else declared.annotation)


def decode_body(body: bytes, shape: Any) -> Any:  # noqa: ANN401 - any type, and a value of it
    """Decode JSON into a type; raises as `JsonRequest.json`."""
    try:
        return _decoder(shape).decode(body)
    except msgspec.ValidationError as error:
        raise InvalidInputError("the request does not fit the call", errors=[field_error(str(error))]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ClientException(f"the body is no JSON: {error}") from None
    except RecursionError:
        raise ClientException("the body is nested too deeply") from None


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - any type
    return msgspec.json.Decoder(shape)


async def refuse_other_media_types(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """Guard: a body that calls itself something else than JSON, or is compressed, is not read as if it were JSON.

    Raises:
        ClientException: 415, naming what the call accepts.
    """
    accepted = handler.opt.get(BODY_TYPES)
    if accepted is None and "data" not in handler.parsed_fn_signature.parameters:
        return
    accepted = accepted or JSON
    given = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given and given not in accepted:
        raise ClientException(
            f"the body is {given[:100]}: send {' or '.join(accepted)}", status_code=HTTP_415_UNSUPPORTED_MEDIA_TYPE
        )
    if connection.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ClientException("send the body uncompressed", status_code=HTTP_415_UNSUPPORTED_MEDIA_TYPE)
