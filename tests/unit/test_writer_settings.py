"""The writer of summaries is there where its settings are, and a start without what it needs says so."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from memory_os.app import build_writer
from memory_os.errors import StartupError
from memory_os.settings import Settings
from memory_os.writing.http import HttpWriter


def settings(**values: Any) -> Settings:
    return Settings(_env_file=None, **values)


@pytest.mark.anyio
async def test_unset_there_is_none() -> None:
    assert build_writer(settings()) is None
    made = build_writer(settings(summary_url="http://127.0.0.1:1/v1", summary_model="writer", summary_timeout_s=2))
    assert isinstance(made, HttpWriter)
    await made.close()


def test_an_address_needs_a_model() -> None:
    with pytest.raises(ValidationError, match="SUMMARY_URL needs SUMMARY_MODEL"):
        settings(summary_url="http://127.0.0.1:1/v1")


def test_an_address_that_can_not_be_used_stops_the_start() -> None:
    with pytest.raises(StartupError, match="SUMMARY_URL: isn't a URL"):
        build_writer(settings(summary_url="here", summary_model="writer"))
