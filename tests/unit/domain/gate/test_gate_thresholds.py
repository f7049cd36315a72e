# ruff: noqa: RUF001 - letters of other scripts are the point

from __future__ import annotations

import pytest

from memory_os.domain.gate.nearness import lexical_score, lexically_near
from memory_os.domain.gate.thresholds import BY_MODEL, SEED, UNKNOWN, Thresholds, thresholds_for
from memory_os.embedding.bundled import BUNDLED_IDENTITY


def test_the_bundled_model_has_a_pair_of_its_own() -> None:
    assert thresholds_for(BUNDLED_IDENTITY.model, BUNDLED_IDENTITY.dimension) == BY_MODEL[BUNDLED_IDENTITY.model]
    assert thresholds_for("some-model", 3072) == SEED
    assert thresholds_for("some-model", 768) == UNKNOWN


@pytest.mark.parametrize("thresholds", [*BY_MODEL.values(), SEED, UNKNOWN])
def test_recent_ones_are_near_sooner_and_review_begins_below(thresholds: Thresholds) -> None:
    assert 0 < thresholds.review <= thresholds.recent < thresholds.older < 1


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("The pump in hall 2 leaks", "In hall 2 the pump is leaking", True),
        ("仓库的钥匙在门卫那里", "门卫那里有仓库的钥匙", True),
        ("창고 열쇠는 경비실에 있다", "경비실에 창고 열쇠가 있다", True),
        ("गोदाम की चाबी दफ्तर में है", "दफ्तर में गोदाम की चाबी रखी है", True),
        ("Ключ от склада у охраны", "У охраны лежит ключ от склада", True),
        ("Το κλειδί είναι στο γραφείο", "Στο γραφείο είναι το κλειδί", True),
        ("مفتاح المخزن عند الحارس", "عند الحارس مفتاح المخزن", True),
        ("The pump in hall 2 leaks", "Ruth bakes bread on Sundays", False),
        ("仓库的钥匙在门卫那里", "她每天早上跑步", False),
        ("", "", False),
    ],
)
def test_words_nominate_in_every_script(one: str, other: str, near: bool) -> None:
    assert lexically_near(one, other) is near
    assert lexical_score(one, other) == lexical_score(other, one)
