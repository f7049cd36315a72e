"""What the command line does about tokens and tenants: each returns the lines to print."""

from __future__ import annotations

import asyncio

import msgspec

from memory_os.admin.bootstrap import make_root_token, make_tenant
from memory_os.admin.tenants import TenantDraft
from memory_os.errors import InvalidInputError, StartupError


def create_root_token(owner_url: str, name: str = "command line") -> list[str]:
    """Make a root token; the one printed line is the token alone, so that a script can take it.

    Raises:
        StartupError: If the database or its login does not serve.
    """
    return [asyncio.run(make_root_token(owner_url, name))]


def create_tenant(owner_url: str, name: str, time_zone: str = "UTC") -> list[str]:
    """Make a tenant with its first token, which administers it.

    Raises:
        StartupError: If the database or its login does not serve, or name or time zone can't be accepted.
    """
    try:
        draft = msgspec.convert({"name": name, "time_zone": time_zone}, TenantDraft)
        made = asyncio.run(make_tenant(owner_url, draft))
    except msgspec.ValidationError as error:
        raise StartupError(str(error)) from None
    except InvalidInputError as error:
        faults = "; ".join(f"{fault.pointer.removeprefix('/')} {fault.detail}" for fault in error.errors)
        raise StartupError(faults or error.detail) from None
    return [f"tenant {made.tenant.id}", f"token  {made.token.token}"]
