#!/usr/bin/env python3
"""Writes docs/operating/settings.md from the settings model: every variable, what it may be, its default, what it does.

Run it after a change of `memory_os.settings`; a unit test fails as long as the page is stale.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from memory_os.settings import Settings

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "operating" / "settings.md"

_HEAD: Final = """\
# Settings

<!-- Written by scripts/settings_table.py from memory_os.settings.Settings: change the model, then run the script. -->

Settings come from the environment, and from a file `.env` in the working directory; the environment wins. A name in
`.env` that is not in this table, a value that is out of range, or two settings that contradict each other stop the
start with one line for each fault. An empty value counts as unset. `memory-os config` prints the settings in force,
secrets hidden.
"""

_HEADING: Final = re.compile(r"^    # --- (.+)$")
_FIELD: Final = re.compile(r"^    (\w+): ")
_NAMES: Final = {bool: "`true` or `false`", int: "whole number", float: "number", str: "text", Path: "path"}


def render() -> str:
    """The page, one table for each group of settings in the model."""
    lines = [_HEAD]
    for heading, names in _groups().items():
        lines += [
            f"## {heading[0].upper() + heading[1:]}",
            "",
            "| variable | value | default | meaning |",
            "|---|---|---|---|",
        ]
        lines += [_row(name, Settings.model_fields[name]) for name in names]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _groups() -> dict[str, list[str]]:
    """The model's fields by the headings that its source has between them."""
    groups: dict[str, list[str]] = {}
    current: list[str] = []
    for line in inspect.getsource(Settings).splitlines():
        if heading := _HEADING.match(line):
            current = groups.setdefault(heading[1], [])
        elif (field := _FIELD.match(line)) and field[1] in Settings.model_fields:
            current.append(field[1])
    return groups


def _row(name: str, field: FieldInfo) -> str:
    cells = (f"`{name.upper()}`", _value(field), _default(field), field.description or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _value(field: FieldInfo) -> str:
    """What a setting may be: its words or its type, and its bounds."""
    kinds = [kind for kind in _members(field.annotation) if kind is not type(None)]
    if get_origin(kinds[0]) is Literal:
        return ", ".join(f"`{word}`" for word in get_args(kinds[0]))
    named = "text (secret)" if kinds[0] is SecretStr else _NAMES[kinds[0]]
    rules = {type(rule): rule for rule in field.metadata}
    least, above, most = rules.get(Ge), rules.get(Gt), rules.get(Le)
    if least and most:
        return f"{named}, {least.ge:,} to {most.le:,}" if least.ge != most.le else f"{least.ge:,}"
    words = [f"at least {least.ge:,}"] if least else [f"above {above.gt:,}"] if above else []
    words += [f"at most {most.le:,}"] if most else []
    words += [f"like `{rule.pattern}`" for rule in field.metadata if getattr(rule, "pattern", None)]
    return ", ".join([named, *words])


def _members(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - any annotation of a field
    return get_args(annotation) if get_origin(annotation) in (UnionType, Union) else (annotation,)


def _default(field: FieldInfo) -> str:
    if field.default is None:
        return "unset"
    value = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(render(), encoding="utf-8")
