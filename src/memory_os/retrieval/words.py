"""The text arm: the records in which the words of the question weigh most (BM25)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from memory_os.domain.search_text import search_text
from memory_os.domain.text_ranking import Frequency, Read, plan_reads
from memory_os.retrieval.arms import ARM_LIMIT, Ref, Window
from memory_os.storage.database import Query, Transaction

MAX_LEXEMES: Final = 256
"""Words of one question that are looked up. The first ones are taken."""

CHANCE_WORDS: Final = 5
"""From so many content words on, a hit must share two: one of five or more is met by chance."""

CANDIDATES: Final = 200
"""Records that are weighed exactly: four times the arm's hits, since some turn out to be past."""

DATED_CANDIDATES: Final = 1_000
"""The same where an earlier time is asked about: most of what is found may have come later."""

COUNTED_RECORDS: Final = 2_000
"""Records that are counted at most where nobody has counted them all before; how rare a word is needs no more."""

PHRASE_RECORDS: Final = 5_000
"""Newest records that are looked through for a question of function words alone: about 20 ms."""


@dataclass(frozen=True, slots=True)
class Words:
    """A question as the text arm reads it.

    Attributes:
        text: Its words, as they are handed to the parser; "" for none.
        count: How many different content words it has.
        reads: What is read for them, rarest first; none where it has only function words, or words that nothing has.
        readers: Whose records are searched: '' for those that all of the tenant may read, and the asker's own.
        pasts: Whether what holds, or what is past, is searched.
    """

    text: str
    count: int = 0
    reads: Sequence[Read] = ()
    readers: Sequence[str] = ()
    pasts: Sequence[bool] = field(default=(False,))

    def parameters(self) -> dict[str, Any]:
        """The question as the statements take it."""
        return {
            "text": self.text,
            "readers": list(self.readers),
            "pasts": [str(past) for past in self.pasts],
            "lexemes": [read.lexeme for read in self.reads],
            "rarities": [read.rarity for read in self.reads],
            "most": [read.most for read in self.reads],
            "cut": [str(read.is_cut) for read in self.reads],
        }


async def weigh_words(tx: Transaction, query: str, window: Window) -> Words:
    """Read a question: its words, and how rare each of them is among what the reader may see; see `weigh_words.sql`."""
    asked = ask_words(tx, query, window)
    return words_of(asked, (await tx.together(asked))[0])


def ask_words(tx: Transaction, query: str, window: Window) -> Query | None:
    """What reads a question, for `words_of`; None if there is nothing in it to look for."""
    text = search_text(query)
    if not text:
        return None
    pasts = (False, True) if window.history or window.as_of is not None else (False,)
    return Query(
        "weigh_words",
        {
            "tenant_id": tx.tenant_id,
            "text": text,
            "readers": readers_of(tx),
            "pasts": [str(past) for past in pasts],
            "max_lexemes": MAX_LEXEMES,
            "most_records": COUNTED_RECORDS,
        },
    )


def words_of(asked: Query | None, rows: Iterable[Mapping[str, Any]]) -> Words:
    """The words of a question, as `ask_words` asked for them; no words where it asked for none."""
    if asked is None:
        return Words("")
    text, readers = asked.parameters["text"], asked.parameters["readers"]
    pasts = tuple(past == str(True) for past in asked.parameters["pasts"])
    found = {row["lexeme"]: Frequency(row["lexeme"], row["records"], row["is_whole"]) for row in rows}
    everything = found.pop("", None)
    reads = plan_reads(found.values(), everything.records if everything else 0, len(readers) * len(pasts))
    return Words(text, len(found), reads, readers, pasts)


async def find_words(tx: Transaction, words: Words, window: Window) -> dict[Ref, float]:
    """The records in which the words weigh most, best first; see `search_text.sql`.

    A hit that shares a single word with a question of `CHANCE_WORDS` or more is below the floor. A question of nothing
    but function words is searched as a phrase, among the newest `PHRASE_RECORDS` records of each kind of readers.
    """
    if not words.text or (words.count and not words.reads):
        return {}
    given = words.parameters() | {
        "tenant_id": tx.tenant_id,
        "as_of": window.as_of,
        "history": window.history,
        "limit": ARM_LIMIT,
    }
    if not words.count:
        rows = await tx.hot("search_phrase", given | {"most": PHRASE_RECORDS})
        return {Ref(row["type"], row["id"]): float(row["rank"]) for row in rows}
    candidates = CANDIDATES if window.as_of is None else DATED_CANDIDATES
    rows = await tx.hot("search_text", given | {"candidates": candidates})
    least = 1 if words.count < CHANCE_WORDS else 2
    return {Ref(row["type"], row["id"]): float(row["rank"]) for row in rows if row["shared"] >= least}


def readers_of(tx: Transaction) -> list[str]:
    """Whose postings the transaction's principal sees, as `postings.reader` names them."""
    scope = tx.scope
    return ["", *([f"u{scope.user_id}"] if scope.user_id else []), *sorted({f"g{group}" for group in scope.groups})]
