"""Pages from templates: autoescaped, with the few formats that operators read times, ages and counts in."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final, Protocol

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from litestar import Response
from litestar.enums import MediaType

PATH: Final = "/console"
_STATIC: Final = files("memory_os_console") / "static"
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SECONDS_WITH_TENTHS: Final = 10
_SHORT_CHARS: Final = 8


class Compared(Protocol):
    """What a comparison has found, or what is known of a graph by one."""

    missing: int
    extra: int
    differing: int
    repaired: int


class Pages:
    """Renders the templates of the console."""

    def __init__(self) -> None:
        self._templates = Environment(
            loader=PackageLoader("memory_os_console"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {
            "instant": as_instant,
            "utc": as_utc,
            "duration": as_duration,
            "pretty": as_pretty_json,
            "short": as_short_id,
            "sentence": as_sentence,
            "differences": as_differences,
        }
        self._templates.globals |= {"asset": asset_address, "path": PATH}

    def render(self, template: str, **context: Any) -> str:  # noqa: ANN401 - whatever the template shows
        """One template as HTML."""
        return self._templates.get_template(template).render(**context)

    def respond(
        self,
        template: str,
        status: int = 200,
        headers: dict[str, str] | None = None,
        **context: Any,  # noqa: ANN401 - as above
    ) -> Response[str]:
        """One template as an answer."""
        return Response(
            self.render(template, **context), status_code=status, media_type=MediaType.HTML, headers=headers
        )


@cache
def asset_address(name: str) -> str:
    """Address of a static file, with its digest: a new release is a new address, so that it may be cached for good."""
    digest = hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:12]
    return f"{PATH}/static/{name}?v={digest}"


def as_instant(value: datetime | str | None) -> datetime | None:
    """A moment from the database or from its JSON; None for what is no moment, such as `infinity`."""
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    try:
        moment = datetime.fromisoformat(value or "")
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def as_utc(moment: datetime) -> str:
    """`2026-01-31 12:00:00 UTC`."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def as_duration(seconds: float | None) -> str:
    """Seconds in the two largest units that matter: `0.4 s`, `45 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`."""
    if seconds is None:
        return "unknown"
    if seconds < _SECONDS_WITH_TENTHS:
        return f"{seconds:.1f} s" if seconds % 1 else f"{seconds:.0f} s"
    rest, parts = int(seconds), list[str]()
    for size, unit in _UNITS:
        count, rest = divmod(rest, size)
        if parts or count:
            parts.append(f"{count} {unit}" if count else "")
        if len(parts) == 2:  # noqa: PLR2004 - the two largest
            break
    return " ".join(part for part in parts if part)


def as_pretty_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """Indented JSON; a plain text, so that it is escaped like any other."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def as_short_id(value: object) -> str:
    """The end of an id: a UUID begins with a time, which is alike in all rows of one burst."""
    return f"…{str(value)[-_SHORT_CHARS:]}"


def as_sentence(text: str) -> str:
    """An error's detail, which begins small since it follows a title elsewhere, as a sentence of its own."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def as_differences(found: Compared) -> str:
    """`3 missing, 1 extra, 4 of them mended`; `nothing` where nothing differs."""
    counts = {"missing": found.missing, "extra": found.extra, "differing": found.differing}
    words = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    if found.repaired:
        words.append(f"{found.repaired:,} of them mended")
    return ", ".join(words) or "nothing"
