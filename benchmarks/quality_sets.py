"""The data that retrieval is measured on, in one form: documents, and questions with the documents that answer them.

The files are kept outside the repository and only read.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from uuid import NAMESPACE_URL, UUID, uuid5

SETS = {
    "locomo": "conversations with questions and evidence turns (snap-research/locomo, CC BY-NC 4.0)",
    "musique": "multi-hop questions over passages (HippoRAG's tuning set of MuSiQue, CC BY 4.0)",
    "hotpotqa": "multi-hop questions over passages (HippoRAG's tuning set of HotpotQA, CC BY-SA 4.0)",
    "2wiki": "multi-hop questions over passages (HippoRAG's tuning set of 2WikiMultihopQA, Apache-2.0)",
}

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""What LoCoMo's numbers mean."""

_TURN = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")
_SESSION = re.compile(r"session_(\d+)")

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """A turn of a conversation, or a passage with its title.

    Attributes:
        key: Its name within the corpus.
        text: What is stored as its text.
        title: A passage's own title.
    """

    key: str
    text: str
    title: str | None = None

    @property
    def whole(self) -> str:
        """Title and text, which the reference methods read."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Session:
    """The turns of one sitting."""

    key: str
    title: str
    date: datetime
    turns: Sequence[Document]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the documents that answer it, and its kind."""

    text: str
    gold: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True)
class Corpus:
    """What one tenant gets: sessions of one conversation, or passages; and the questions about it.

    Attributes:
        name: Its name, the same from run to run.
        form: `conversation` becomes sources with passages, `memories` becomes memories.
        documents: All of them in order.
        sessions: Of a conversation.
        questions: Only those that some document answers.
    """

    name: str
    form: Literal["conversation", "memories"]
    documents: Sequence[Document]
    questions: Sequence[Question]
    sessions: Sequence[Session] = ()

    def ident(self, key: str) -> UUID:
        """The id under which a document or session is stored."""
        return uuid5(NAMESPACE_URL, f"memory-os:quality:{self.name}:{key}")

    @property
    def digest(self) -> str:
        """Tells whether the documents are still the same."""
        text = json.dumps([(one.key, one.whole) for one in self.documents])
        return hashlib.sha256(text.encode()).hexdigest()


def read_set(name: str, path: Path) -> list[Corpus]:
    """The corpora of a set.

    Exits:
        With what is missing and where it comes from, if the file is not there.
    """
    if not path.exists():
        sys.exit(
            f"{path} is not there: it holds {SETS[name]}; it is kept outside the repository. Give its folder as "
            f"--data, the file itself as --{name}, or leave it out with --only"
        )
    given = json.loads(path.read_text(encoding="utf-8"))
    if name == "locomo":
        return [_conversation(one) for one in given]
    return [_passages(name, given)]


def _passages(name: str, given: Json) -> Corpus:
    documents = []
    for number, text in enumerate(given["docs"]):
        title, _, rest = text.partition("\n")
        documents.append(Document(str(number), rest, title) if rest.strip() else Document(str(number), text))
    questions = [
        Question(one["q"], frozenset(map(str, one["gold"])), one["type"]) for one in given["questions"] if one["gold"]
    ]
    return Corpus(name, "memories", documents, questions)


def _conversation(given: Json) -> Corpus:
    sessions = list(_sessions(given["conversation"]))
    documents = [turn for session in sessions for turn in session.turns]
    known = {turn.key for turn in documents}
    questions = [
        Question(one["question"], gold, CATEGORIES[one["category"]])
        for one in given["qa"]
        if (gold := frozenset(evidence(one.get("evidence") or ())) & known)
    ]
    return Corpus(f"locomo/{given['sample_id']}", "conversation", documents, questions, sessions)


def _sessions(conversation: Json) -> Iterator[Session]:
    names = f"{conversation['speaker_a']} and {conversation['speaker_b']}"
    numbers = sorted(int(found[1]) for key in conversation if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        turns = [Document(turn_key(turn["dia_id"]), turn_text(turn)) for turn in conversation[f"session_{number}"]]
        if turns:
            said = conversation[f"session_{number}_date_time"]
            date = datetime.strptime(said, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            yield Session(f"session {number}", f"{names}, {date:%-d %B %Y}", date, turns)


def turn_text(turn: Json) -> str:
    """The text of a turn: `Speaker: utterance [caption of the image]`."""
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" [{caption}]" if caption else "")


def turn_key(ident: str) -> str:
    """A turn's id without odd zeros and colons: "D30:05" and "D:30:5" are D30:5."""
    return next(iter(evidence([ident])), ident)


def evidence(named: Sequence[str]) -> list[str]:
    """The turns that a question names; some of its texts name several ("D8:6; D9:17")."""
    return [f"D{int(session)}:{int(turn)}" for text in named for session, turn in _TURN.findall(text)]
