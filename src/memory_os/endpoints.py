"""What all model endpoints over HTTP have in common: which addresses and keys can be used, and how much is read."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import httpx  # whoever only checks settings does not load it


def url_fault(url: str, *, key_setting: str) -> str | None:
    """What is wrong with an endpoint's address, or None: only what can be logged whole, as HTTP libraries do, is right.

    Args:
        url: As it was set.
        key_setting: The setting that a key belongs in, for the mend.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        return "isn't a URL such as https://host:port/v1"
    if parts.username or parts.password or parts.query or parts.fragment:
        return f"must not hold credentials, a query or a fragment; the key belongs in {key_setting}"
    return None


def key_fault(api_key: str | None) -> str | None:
    """What is wrong with a key, or None. The HTTP library would refuse it too, with the key in its message."""
    if api_key is None or (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        return None
    return "holds white space or letters that a header can't carry"


async def read_bounded(response: httpx.Response, most_bytes: int) -> bytes | None:
    """The body of a streamed answer, or None where it is larger than the bound."""
    reply = bytearray()
    async for chunk in response.aiter_bytes():
        reply += chunk
        if len(reply) > most_bytes:
            return None
    return bytes(reply)
