"""The strict encoder that stands before every value on its way into a graph.

FalkorDB has no bound parameters: a client writes them as text into a `CYPHER name=value` header. What the engine does
with a value it can't hold is not always an error (measured on 4.16.3: 2**63 is silently clamped to 2**63 - 1, a Decimal
becomes a float, a NUL cuts the text), so nothing passes that would not come back as it went in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from memory_os.graph.port import GraphDataError

INT_MAX = 2**63 - 1
"""Largest integer of the engine (signed 64 bits); the smallest is `-INT_MAX - 1`."""

MAX_DEPTH = 16
"""Nesting of lists and maps that is accepted; our own rows nest three deep."""

_FLOAT_DIGITS = 15
"""Significant digits that the engine prints (`%.15g`); a float with more would come back as another one."""

_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}", re.ASCII)
_UNSTORABLE = re.compile(r"[\x00\ud800-\udfff]")


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
    if _UNSTORABLE.search(value):
        raise GraphDataError("A text for the graph holds a NUL or a lone surrogate.")
    return str.__str__(value)


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
    try:
        number = float(format(float(value), f".{_FLOAT_DIGITS}g"))
    except OverflowError as error:
        raise GraphDataError("A number for the graph is too large for a float.") from error
    if not math.isfinite(number):
        raise GraphDataError("A number for the graph is infinite or not a number.")
    return number


def encode(value: object, _depth: int = 0) -> str:
    """Write a value as a Cypher literal.

    Args:
        value: Text, boolean, finite float, integer of 64 bits, None, or a list or map of these.

    Returns:
        The literal. Floats are made canonical first (see `canonical_float`).

    Raises:
        GraphDataError: The value, or one inside it, is of another kind or out of range.
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + check_text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int):
        return int.__repr__(check_int(value))
    if isinstance(value, float):
        return float.__repr__(canonical_float(value))
    if _depth >= MAX_DEPTH:
        raise GraphDataError(f"A value for the graph is nested deeper than {MAX_DEPTH}.")
    if isinstance(value, list | tuple):
        return "[" + ",".join([encode(item, _depth + 1) for item in value]) + "]"
    if isinstance(value, Mapping):
        return "{" + ",".join([f"`{check_key(key)}`:{encode(item, _depth + 1)}" for key, item in value.items()]) + "}"
    raise GraphDataError(f"The graph holds no value of type {type(value).__name__}.")


def check_key(key: object) -> str:
    """Give back a map key or parameter name that needs no escaping; raises `GraphDataError` for any other."""
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise GraphDataError("A map key for the graph must be an ASCII identifier of at most 64 characters.")
    return str.__str__(key)


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
