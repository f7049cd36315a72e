"""BM25's formulas and the plan of reads, without a database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_os.domain.text_ranking import (
    K1,
    LEXEMES,
    LIST_HEAD,
    READ_LIMIT,
    USUAL_WORDS,
    WHOLE_LIST,
    Frequency,
    impact,
    plan_reads,
    rarity,
)

COUNTS = st.integers(0, 2**31)
OCCURRENCES = st.integers(1, 255)
LENGTHS = st.integers(1, 32_767)
FREQUENCIES = st.lists(
    st.builds(Frequency, st.text(min_size=1, max_size=5), st.integers(0, 5_000), st.booleans()),
    max_size=300,
    unique_by=lambda one: one.lexeme,
)


@given(OCCURRENCES, LENGTHS)
def test_an_impact_grows_with_the_occurrences_and_has_a_bound(occurrences: int, length: int) -> None:
    assert impact(0, length) == 0
    assert impact(occurrences, length) < impact(occurrences + 1, length) < K1 + 1


@given(OCCURRENCES, LENGTHS)
def test_an_impact_falls_with_the_length(occurrences: int, length: int) -> None:
    assert impact(occurrences, length) > impact(occurrences, length + 1)


def test_one_occurrence_in_a_record_of_the_usual_length_weighs_one() -> None:
    assert impact(1, USUAL_WORDS) == 1


@given(COUNTS, COUNTS)
def test_a_rarity_is_never_negative_whatever_the_counts(records_with: int, records: int) -> None:
    assert rarity(records_with, records) > 0


@given(st.integers(0, 10_000), st.integers(1, 1_000_000))
def test_a_rarer_word_tells_more(records_with: int, more: int) -> None:
    records = records_with + more
    assert rarity(records_with, records) > rarity(records_with + 1, records)


@given(FREQUENCIES, st.integers(1, 12))
def test_reads_are_bounded_and_take_the_rarest(frequencies: list[Frequency], lists: int) -> None:
    reads = plan_reads(frequencies, 10_000, lists)
    known = {one.lexeme: one for one in frequencies}
    there = sorted(one.records for one in frequencies if one.records)
    assert [known[read.lexeme].records for read in reads] == there[:LEXEMES]
    read = [min(known[one.lexeme].records, one.most * lists) for one in reads if one.is_cut]
    assert sum(read) + sum(known[one.lexeme].records for one in reads if not one.is_cut) <= READ_LIMIT
    for one in reads:
        word = known[one.lexeme]
        assert one.most <= (LIST_HEAD if one.is_cut else WHOLE_LIST)
        assert one.is_cut or (word.is_whole and word.records <= one.most)


@given(FREQUENCIES)
def test_the_order_in_which_words_are_counted_changes_nothing(frequencies: list[Frequency]) -> None:
    assert plan_reads(frequencies, 10_000, 2) == plan_reads(frequencies[::-1], 10_000, 2)


def test_a_rare_word_is_read_whole_and_a_common_one_in_part() -> None:
    reads = plan_reads([Frequency("common", 90_000, True), Frequency("rare", 3, True)], 100_000, 2)
    assert [(one.lexeme, one.most, one.is_cut) for one in reads] == [
        ("rare", WHOLE_LIST, False),
        ("common", LIST_HEAD, True),
    ]


def test_a_word_whose_counting_was_given_up_is_common() -> None:
    (read,) = plan_reads([Frequency("word", 16, False)], 100_000, 1)
    assert (read.most, read.is_cut) == (LIST_HEAD, True)


def test_a_word_that_nothing_has_is_not_read() -> None:
    assert plan_reads([Frequency("word", 0, True)], 10, 1) == []
