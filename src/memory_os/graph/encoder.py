"""The strict encoder that stands before every value on its way into a graph.

FalkorDB has no bound parameters: a client writes them as text into a `CYPHER name=value` header. What the engine does
with a value it can't hold is not always an error (measured on 4.16.3: 2**63 is silently clamped to 2**63 - 1, a Decimal
becomes a float, a NUL cuts the text), so nothing passes that would not come back as it went in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache

from memory_os.graph.port import GraphDataError

INT_MAX = 2**63 - 1
"""Largest integer of the engine (signed 64 bits); the smallest is `-INT_MAX - 1`."""

MAX_DEPTH = 16
"""Nesting of lists and maps that is accepted; our own rows nest three deep."""

ID_BYTES = 4096
"""Longest id in UTF-8. The engine's index does not find longer ones again (measured on 4.16.3)."""

_FLOAT_DIGITS = 15
"""Significant digits that the engine prints (`%.15g`); a float with more would come back as another one."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_WHITE_SPACE = "\t\n\v\f\r "


def check_text(value: object) -> str:
    """Give back a text that both backends can hold.

    Args:
        value: What should be a text.

    Returns:
        The same text, as a plain `str`.

    Raises:
        GraphDataError: It is no text, or holds a NUL or a lone surrogate.
    """
    if not isinstance(value, str):
        raise GraphDataError(f"The graph takes text here, not {type(value).__name__}.")
    # Most texts are ASCII, where one look for NUL is enough: a search by pattern takes five times as long.
    if "\0" in value or not (value.isascii() or not _SURROGATE.search(value)):
        raise GraphDataError("A text for the graph holds a NUL or a lone surrogate.")
    return value if type(value) is str else str.__str__(value)


def check_id(value: object) -> str:
    """Give back a text that can be an id in the graph.

    The engine's index trims white space, cuts at U+0001 and leaves long texts out (all three measured on 4.16.3). An id
    that it does not find again would be made anew by every MERGE, so such ids are refused; those of this service are
    UUIDs.

    Raises:
        GraphDataError: It is no text, is empty or too long, or begins or ends with white space.
    """
    text = check_text(value)
    if not text or len(text if text.isascii() else text.encode()) > ID_BYTES:
        raise GraphDataError(f"An id in the graph has 1 to {ID_BYTES} bytes.")
    if "\x01" in text or text != text.strip(_WHITE_SPACE):
        raise GraphDataError("An id in the graph can't begin or end with white space or hold U+0001.")
    return text


def is_id(value: object) -> bool:
    """Tell whether something can be an id in the graph. Reads pass over what can't: it is not there."""
    try:
        check_id(value)
    except GraphDataError:
        return False
    return True


def check_int(value: object) -> int:
    """Give back an integer of 64 bits, signed; raises `GraphDataError` for anything else, booleans too."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise GraphDataError(f"The graph takes an integer here, not {type(value).__name__}.")
    if not -INT_MAX - 1 <= value <= INT_MAX:
        raise GraphDataError("An integer for the graph needs more than 64 bits.")
    return int(value)


def canonical_float(value: object) -> float:
    """Give back the float that both backends store and read for a number: finite, 15 significant digits.

    Whoever compares a graph with values of its own (verify, repair, tests) passes them through here first.

    Raises:
        GraphDataError: It is no number, or is infinite or NaN.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise GraphDataError(f"The graph takes a number here, not {type(value).__name__}.")
    # Zero has two signs and one place in a cache.
    return _canonical(value) if value else float(value)


@lru_cache(maxsize=4096)
def _canonical(value: float) -> float:
    """The same few weights come again and again, and formatting each was a tenth of a patch's time."""
    try:
        number = float(format(float(value), f".{_FLOAT_DIGITS}g"))
    except OverflowError as error:
        raise GraphDataError("A number for the graph is too large for a float.") from error
    if not math.isfinite(number):
        raise GraphDataError("A number for the graph is infinite or not a number.")
    return number


def encode(value: object) -> str:
    """Write a value as a Cypher literal.

    Args:
        value: Text, boolean, finite float, integer of 64 bits, None, or a list or map of these.

    Returns:
        The literal. Floats are made canonical first (see `canonical_float`).

    Raises:
        GraphDataError: The value, or one inside it, is of another kind or out of range.
    """
    return _encode(value, 0)


def _encode(value: object, depth: int) -> str:
    if isinstance(value, str):
        text = '"' + check_text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    elif value is None:
        text = "null"
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, float):
        text = float.__repr__(canonical_float(value))
    elif isinstance(value, int):
        text = int.__repr__(check_int(value))
    elif depth >= MAX_DEPTH:
        raise GraphDataError(f"A value for the graph is nested deeper than {MAX_DEPTH}.")
    elif isinstance(value, list | tuple):
        text = "[" + ",".join([f'"{item}"' if _is_plain(item) else _encode(item, depth + 1) for item in value]) + "]"
    elif isinstance(value, Mapping):
        text = "{" + ",".join([_quote_key(key) + ":" + _encode(item, depth + 1) for key, item in value.items()]) + "}"
    else:
        raise GraphDataError(f"The graph holds no value of type {type(value).__name__}.")
    return text


def _is_plain(value: object) -> bool:
    """Tell a text that stands for itself between quotes, as ids do: it spares them two thirds of the time."""
    return type(value) is str and value.isascii() and "\\" not in value and '"' not in value and "\0" not in value


def check_key(key: object) -> str:
    """Give back a map key or parameter name that needs no escaping; raises `GraphDataError` for any other."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise GraphDataError("A map key for the graph must be an ASCII identifier of at most 64 characters.")
    return str.__str__(key)


@lru_cache(maxsize=256)
def _quote_key(key: object) -> str:
    """Quote a key, so that a reserved word can be one. The same few keys come in every row."""
    return f"`{check_key(key)}`"


def render_query(text: str, parameters: Mapping[str, object]) -> str:
    """Put the parameters before a query as the header that the engine parses.

    Args:
        text: The query, made of constant text only.
        parameters: Values by name; the text reads them as `$name`.

    Returns:
        What goes on the wire.

    Raises:
        GraphDataError: A parameter can't be encoded.
    """
    header = " ".join([f"{check_key(name)}={encode(value)}" for name, value in parameters.items()])
    return f"CYPHER {header} {text}" if header else text
