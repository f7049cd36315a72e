"""Makes the writer that the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_os.endpoints import key_fault, url_fault
from memory_os.writing.port import WriterSettingsError

if TYPE_CHECKING:
    from memory_os.writing.http import HttpWriter


def make_writer(*, url: str | None, model: str | None, api_key: str | None, timeout: float) -> HttpWriter | None:
    """The writer of SUMMARY_URL, or None where that is unset; it is asked nothing before the first summary.

    Raises:
        WriterSettingsError: A setting is missing or can't be used; the message names it and how to mend it.
    """
    if not url:
        return None
    if not model:
        raise WriterSettingsError("SUMMARY_MODEL", "is needed with SUMMARY_URL")
    if fault := url_fault(url, key_setting="SUMMARY_API_KEY"):
        raise WriterSettingsError("SUMMARY_URL", fault)
    if fault := key_fault(api_key):
        raise WriterSettingsError("SUMMARY_API_KEY", fault)
    from memory_os.writing.http import HttpWriter  # noqa: PLC0415 - an adapter's libraries come when it is made

    return HttpWriter(url=url, model=model, api_key=api_key or None, timeout=timeout)
