"""What the product is compared with: BM25, and the plain model with exact cosine, over the same documents."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import snowballstemmer
from embedders import VectorFile
from numpy.typing import NDArray
from quality_metrics import Ranking
from quality_sets import Corpus

from memory_os.embedding.bundled import BundledEmbedder

K1, B = 1.2, 0.75
DEPTH = 50
CHUNK = 256

STOP_WORDS = frozenset(
    "a about above after again against all am an and any are as at be because been before being below between both but "
    "by can did do does doing don down during each few for from further had has have having he her here hers herself "
    "him himself his how i if in into is it its itself just me more most my myself no nor not now of off on once only "
    "or other our ours ourselves out over own s same she should so some such t than that the their theirs them "
    "themselves then there these they this those through to too under until up very was we were what when where which "
    "while who whom why will with you your yours yourself yourselves".split()
)
"""Postgres' English ones."""

_WORD = re.compile(r"\w+")


class Bm25:
    """BM25 by its formula over all documents, none left out."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._stem = snowballstemmer.stemmer("english").stemWord
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = np.zeros(len(texts))
        for number, text in enumerate(texts):
            words = self._words(text)
            lengths[number] = len(words)
            for word, count in Counter(words).items():
                self._postings[word].append((number, count))
        self._norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1))

    def scores(self, question: str) -> NDArray[np.float64]:
        """The score of each document; a word counts once however often it is asked."""
        scores = np.zeros(len(self._norm))
        for word in set(self._words(question)):
            found = self._postings.get(word, ())
            if found:
                numbers, counts = np.array(found).T
                rarity = np.log(1 + (len(scores) - len(found) + 0.5) / (len(found) + 0.5))
                scores[numbers] += rarity * counts * (K1 + 1) / (counts + self._norm[numbers])
        return scores

    def _words(self, text: str) -> list[str]:
        return [self._stem(word) for word in _WORD.findall(text.casefold()) if word not in STOP_WORDS]


def bm25(corpora: Sequence[Corpus]) -> list[Ranking]:
    """Rankings of BM25."""
    rankings = []
    for corpus in corpora:
        index = Bm25([document.whole for document in corpus.documents])
        rankings += rank(corpus, [index.scores(question.text) for question in corpus.questions])
    return rankings


def cosine(corpora: Sequence[Corpus], kept: Path) -> list[Ranking]:
    """Rankings of the plain model. Vectors that the product has made of the same texts are taken from the file."""
    rankings = []
    for corpus in corpora:
        texts = [document.whole for document in corpus.documents]
        made = asyncio.run(vectors([*texts, *(question.text for question in corpus.questions)], kept))
        rankings += rank(corpus, made[len(texts) :] @ made[: len(texts)].T)
    return rankings


def rank(corpus: Corpus, scores: Sequence[NDArray[np.float64]] | NDArray[np.float32]) -> list[Ranking]:
    """The best documents of each question; what scores nothing is not found."""
    made = []
    for question, row in zip(corpus.questions, scores, strict=True):
        best = [number for number in np.argsort(-row, kind="stable")[:DEPTH] if row[number] > 0]
        made.append(Ranking(question.kind, question.gold, [corpus.documents[number].key for number in best]))
    return made


async def vectors(texts: Sequence[str], kept: Path) -> NDArray[np.float32]:
    """The model's vectors of these texts, from the file or made now and added to it."""
    file, model = VectorFile(kept), BundledEmbedder()
    found = file.find(texts)
    missing = [text for text in dict.fromkeys(texts) if text not in found]
    for start in range(0, len(missing), CHUNK):
        part = missing[start : start + CHUNK]
        made = dict(zip(part, await model.embed(part), strict=True))
        file.keep(made.items())
        found |= made
        print(f"reference: embedded {start + len(part)} of {len(missing)}", flush=True)
    await model.close()
    return np.stack([found[text] for text in texts])
