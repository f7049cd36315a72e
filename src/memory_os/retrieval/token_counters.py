"""The token counter that TOKEN_COUNTER names, checked at the start rather than at the first question."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Final

from memory_os.domain.token_counting import ESTIMATE, TokenCounter, counter_of
from memory_os.errors import StartupError

_FUNCTION: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_TIKTOKEN: Final = "tiktoken:"
_PROBE: Final = "How many tokens are these?"


def load_counter(name: str) -> TokenCounter:
    """The counter of a setting's value.

    Args:
        name: `estimate`, `tiktoken:` with an encoding such as `o200k_base`, or `module:function` of a function from a
            text to its number of tokens.

    Raises:
        StartupError: It can't be loaded or does not count; the message says how to mend it.
    """
    if name == ESTIMATE.name:
        return ESTIMATE
    if name.startswith(_TIKTOKEN):
        count = _tiktoken(name.removeprefix(_TIKTOKEN))
    elif _FUNCTION.fullmatch(name):
        count = _function(*name.split(":"))
    else:
        raise StartupError(f"TOKEN_COUNTER: {name!r} is none of estimate, tiktoken:ENCODING and module:function")
    _check(name, count)
    return counter_of(name, count)


def _tiktoken(encoding: str) -> Callable[[str], int]:
    try:
        tiktoken = importlib.import_module("tiktoken")
    except ImportError:
        raise StartupError("TOKEN_COUNTER: tiktoken is not installed: run `pip install tiktoken`") from None
    try:
        encoder = tiktoken.get_encoding(encoding)
    except ValueError:
        known = ", ".join(tiktoken.list_encoding_names())
        raise StartupError(f"TOKEN_COUNTER: tiktoken knows no encoding {encoding!r}, but {known}") from None
    except Exception as error:
        raise StartupError(
            f"TOKEN_COUNTER: tiktoken can't load {encoding} ({type(error).__name__}): it fetches its tables at first "
            "use; set TIKTOKEN_CACHE_DIR to a folder that has them, or TOKEN_COUNTER=estimate"
        ) from error
    # Stored text may hold what looks like a control token; it is text.
    return lambda text: len(encoder.encode(text, disallowed_special=()))


def _function(module: str, name: str) -> Callable[[str], int]:
    try:
        found = getattr(importlib.import_module(module), name, None)
    except Exception as error:
        raise StartupError(
            f"TOKEN_COUNTER: {module} can't be imported ({type(error).__name__}: {error}): is it on PYTHONPATH?"
        ) from error
    if not callable(found):
        raise StartupError(f"TOKEN_COUNTER: {module} has no function {name}")
    counted: Callable[[str], int] = found
    return counted


def _check(name: str, count: Callable[[str], int]) -> None:
    """Refuse what does not count."""
    try:
        counted = [count(""), count(_PROBE), count(_PROBE * 2)]
    except Exception as error:
        raise StartupError(f"TOKEN_COUNTER: {name} fails with {type(error).__name__}: {error}") from error
    if any(type(one) is not int or one < 0 for one in counted) or not 0 < counted[1] < counted[2]:
        raise StartupError(
            f"TOKEN_COUNTER: {name} must answer a whole number of tokens that grows with the text; it counts "
            f"{counted[0]!r} in nothing, {counted[1]!r} in a sentence and {counted[2]!r} in two"
        )
