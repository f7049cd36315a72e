from __future__ import annotations

import random

import psycopg

from memory_os.domain.weights import (
    CO_OCCURRENCE_WEIGHT_SQL,
    MENTION_WEIGHT_SQL,
    co_occurrence_weight,
    mention_weight,
)

Connection = psycopg.Connection[tuple[object, ...]]


def test_mention_weights_are_equal_bit_for_bit(database: Connection) -> None:
    dice = random.Random(7)
    confidences = [dice.random() for _ in range(3000)] + [round(dice.random(), 3) for _ in range(3000)]
    confidences += [0.0, 1.0, 0.6, 0.7, 0.8, 0.1234565, 0.0000005]
    counts = [dice.choice([1, 2, 3, 7, 20, 25, 1000]) for _ in confidences]
    weight = MENTION_WEIGHT_SQL.format(confidence="given.confidence", occurrences="given.occurrences")
    rows = database.execute(
        f"SELECT {weight} FROM unnest(%s::float8[], %s::int[]) WITH ORDINALITY"
        " AS given(confidence, occurrences, place) ORDER BY place",
        [confidences, counts],
    ).fetchall()
    assert [row[0] for row in rows] == list(map(mention_weight, confidences, counts))


def test_co_occurrence_weights_are_equal_bit_for_bit(database: Connection) -> None:
    weight = CO_OCCURRENCE_WEIGHT_SQL.format(records="records")
    rows = database.execute(f"SELECT {weight} FROM generate_series(1, 500) AS given(records)").fetchall()
    assert [row[0] for row in rows] == [co_occurrence_weight(records) for records in range(1, 501)]
