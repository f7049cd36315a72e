"""The reference page at `/schema`: Swagger UI, shipped with the service, so that the page asks no other host."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from litestar import Router
from litestar.openapi.plugins import SwaggerRenderPlugin
from litestar.static_files import create_static_files_router

ASSETS = "/schema/assets"

PAGE = SwaggerRenderPlugin(
    js_url=f"{ASSETS}/swagger-ui-bundle.js",
    css_url=f"{ASSETS}/swagger-ui.css",
    standalone_preset_js_url=f"{ASSETS}/swagger-ui-standalone-preset.js",
    favicon=f"<link rel='icon' type='image/png' href='{ASSETS}/favicon-32x32.png'>",
)


def assets_router() -> Router:
    """The page's scripts and styles (swagger-ui-dist 5.35.0, Apache-2.0; its licence lies beside them)."""
    folder = Path(str(files("memory_os.api"))) / "static" / "swagger-ui"
    return create_static_files_router(path=ASSETS, directories=[folder], opt={"public": True})
