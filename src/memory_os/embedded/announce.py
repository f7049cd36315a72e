"""What a started stack tells on the terminal."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from contextlib import suppress

from memory_os.embedded.ready import ReadyFile

EXAMPLE_MEMORY = {
    "text": "We deploy on Tuesdays, after the nightly backup has been verified.",
    "label": "Decision",
}
EXAMPLE_QUERY = {"query": "When do we deploy?"}


def make_printer() -> Callable[[str], None]:
    """A function that prints one line of progress: coloured on a terminal, plain and unbuffered elsewhere.

    Lines are never wrapped or read as markup: they hold commands to copy and text of other programs. A terminal that
    has gone, or a pipe that nobody reads any more, takes nothing down with it.
    """
    if not sys.stdout.isatty():

        def say_plainly(line: str) -> None:
            with suppress(OSError):
                print(line, flush=True)  # noqa: T201 - this is the terminal's side of the command

        return say_plainly
    from rich.console import Console  # noqa: PLC0415 - not needed where nobody sees colours

    console = Console()

    def say(line: str) -> None:
        with suppress(OSError):
            console.print(line, soft_wrap=True, markup=False, highlight=not line.lstrip().startswith("curl"))

    return say


def describe(ready: ReadyFile, *, seconds: float, credentials: str) -> list[str]:
    """The lines that end a start: addresses, the tenant's token, one command that stores and one that retrieves.

    Args:
        ready: The stack.
        seconds: How long the start has taken.
        credentials: File that holds the tokens, the root token among them.
    """
    return [
        "",
        f"Memory OS is ready ({seconds:.1f} s).",
        f"  API      {ready.api}  (reference: {ready.api}/schema)",
        f"  Console  {ready.console}",
        f"  Tenant   {ready.tenant_id}",
        f"  Token    {ready.token}",
        f"  All tokens are in {credentials}",
        "",
        "Store a memory:",
        f"  {curl(ready, '/v1/memories', EXAMPLE_MEMORY)}",
        "",
        "Retrieve:",
        f"  {curl(ready, '/v1/retrieve', EXAMPLE_QUERY)}",
        "",
        "Ctrl-C stops everything; the data stays.",
    ]


def curl(ready: ReadyFile, path: str, body: object) -> str:
    """A POST to paste into any POSIX shell."""
    return shlex.join(
        [
            "curl",
            "-sS",
            f"{ready.api}{path}",
            "-H",
            f"Authorization: Bearer {ready.token}",
            "-H",
            "Content-Type: application/json",
            "-d",
            json.dumps(body),
        ]
    )
