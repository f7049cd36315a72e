"""The page of settings is written from the model, so it can't say anything else than the model does."""

from __future__ import annotations

from scripts.settings_table import PAGE, render

from memory_os.settings import Settings


def test_the_page_of_settings_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "the page is stale: run scripts/settings_table.py"


def test_the_page_names_every_setting_once() -> None:
    rows = [line for line in render().splitlines() if line.startswith("| `")]
    named = [line.split("`")[1] for line in rows]

    assert sorted(named) == sorted(name.upper() for name in Settings.model_fields)


def test_the_page_shows_no_default_secret() -> None:
    secrets = [line for line in render().splitlines() if "(secret)" in line]

    assert secrets
    assert all("| unset |" in line for line in secrets)
