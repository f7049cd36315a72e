"""What `memory-os up` has the rest of the service do: migrate, make the first tokens, load the sample."""

from __future__ import annotations

import asyncio

from memory_os import sample
from memory_os.admin import bootstrap
from memory_os.embedded.options import Credentials, StackSteps
from memory_os.storage.migrate import upgrade


def stack_steps() -> StackSteps:
    """The steps of a real installation."""
    return StackSteps(migrate=upgrade, bootstrap=_bootstrap, sample=sample.load)


def _bootstrap(owner_url: str, known: Credentials | None) -> Credentials:
    held = bootstrap.Credentials(known.root_token, known.tenant_id, known.token) if known else None
    made = asyncio.run(bootstrap.ensure_instance(owner_url, known=held))
    return Credentials(made.root_token, str(made.tenant_id), made.token)
