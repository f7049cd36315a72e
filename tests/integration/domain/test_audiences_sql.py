"""The rule of who covers whom is the same in Python and in SQL."""

from __future__ import annotations

import random
from typing import Any

import psycopg
from tests.fixtures.postgres import DatabaseUrls

from memory_os.domain.audiences import Audience

USERS, GROUPS = ["ann", "ben", "a_b", "a%"], ["north", "south"]


def _readers(dice: random.Random) -> dict[str, Any]:
    visibility = dice.choice(["tenant", "private", "restricted"])
    return {
        "visibility": visibility,
        "user_id": dice.choice(USERS if visibility == "private" else [*USERS, None]),
        "reader_users": dice.sample(USERS, dice.randint(0, 3)),
        "reader_groups": dice.sample(GROUPS, dice.randint(0, 2)),
    }


def test_sql_and_python_agree_on_who_covers_whom(database_urls: DatabaseUrls) -> None:
    dice = random.Random(17)
    found = {True: 0, False: 0}
    with psycopg.connect(database_urls.owner_url) as connection:
        for _ in range(600):
            one, other = _readers(dice), _readers(dice)
            expected = Audience.of_columns(one).covers(Audience.of_columns(other))
            row = connection.execute(
                "SELECT memory_os_covers(%s::text, %s::text, %s::text[], %s::text[], %s::text, %s::text, %s::text[], "
                "%s::text[])",
                [*one.values(), *other.values()],
            ).fetchone()
            assert row == (expected,), (one, other)
            found[expected] += 1
    assert min(found.values()) > 50
