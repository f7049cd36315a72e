"""What a reranker raises, and what the settings may be wrong in."""

from __future__ import annotations


class RerankError(Exception):
    """A reranker can't answer: the order stays as it was found. Its message holds no text and no secret."""


class RerankSettingsError(Exception):
    """The settings don't name one reranker that can work.

    Attributes:
        setting: The environment variable to mend, such as `RERANK_URL`.
    """

    def __init__(self, setting: str, problem: str) -> None:
        super().__init__(f"{setting}: {problem}")
        self.setting = setting
