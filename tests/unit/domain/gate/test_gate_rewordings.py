"""Turns of phrase that leave a statement as it is, and their neighbours that do not."""

from __future__ import annotations

import pytest

from memory_os.domain.gate.judging import Aliases, Statement, Thresholds, Verdict, judge
from memory_os.domain.gate.rewordings import reworded

THRESHOLDS = Thresholds(recent=0.7, older=0.75, review=0.5)


def verdict(existing: str, new: str) -> Verdict:
    return judge(
        Statement(existing, "Preference"),
        Statement(new, "Preference"),
        similarity=0.9,
        thresholds=THRESHOLDS,
        recent=False,
        aliases=Aliases(),
    ).verdict


SAME = [
    # Clefts.
    ("Alex prefers direct feedback", "Direct feedback is what Alex prefers"),
    ("Alex prefers direct feedback", "What Alex prefers is direct feedback"),
    ("Mara keeps the spare key", "It is Mara who keeps the spare key"),
    ("Mara keeps the spare key", "Mara is the one who keeps the spare key"),
    ("Ida's favourite colour is green", "Green is Ida's favorite colour"),
    ("Gus likes Mara", "It is Mara that Gus likes"),
    # Clauses that move as a whole.
    ("If it rains, Ivo takes the bus", "Ivo takes the bus if it rains"),
    ("When it rains, Ivo takes the bus", "Ivo takes the bus when it rains"),
    ("Last year, Gus sold his car", "Gus sold his car last year"),
    ("The attic is cleaned by Bo and Ann", "Ann and Bo clean the attic"),
    ("Omar, who is a carpenter from Leeds, repairs chairs", "Omar, a carpenter from Leeds, repairs chairs"),
    ("Ida, who lives in Bern, plays chess", "Ida lives in Bern and plays chess"),
    # Preferring.
    ("Alex prefers tea to coffee", "Alex would rather have tea than coffee"),
    ("Alex prefers tea to coffee", "Alex likes tea better than coffee"),
    ("Alex prefers tea", "Alex likes tea"),
    ("Ida prefers working alone", "Ida likes to work alone"),
    ("Use tabs, not spaces", "Use tabs instead of spaces"),
    # Verbs and what they take.
    ("The shed is to be locked at night", "The shed has to be locked at night"),
    ("It is forbidden to smoke in the barn", "Smoking is forbidden in the barn"),
    ("Lena likes to hike", "Lena likes hiking"),
    ("Ida has worked here since 2010", "Ida has been working here since 2010"),
    ("Nadia turns the heating off at night", "Nadia switches off the heating at night"),
    ("Pia paid a visit to the dentist", "Pia visited the dentist"),
    ("The film is at eight", "The film starts at eight"),
    ("The fee amounts to 40 euros", "The fee is 40 euros"),
    ("The mill belongs to Rosa", "Rosa owns the mill"),
    ("There is no lift in the house", "The house has no lift"),
    ("The mill will close in May", "The mill is going to close in May"),
    ("Bo never forgets to lock up", "Bo always remembers to lock up"),
    ("Ida is younger than Bo", "Bo is older than Ida"),
    # Numbers.
    ("The rent rose from 700 to 750 euros", "The rent increased from €700 to €750"),
    ("Two in three tenants own a bike", "2 in 3 tenants own a bike"),
    ("Gus answers within an hour", "Gus replies within one hour"),
    ("Customers get a 10 % discount", "Customers receive a discount of 10 percent"),
    ("The pool is open between May and August", "The pool is open from May to August"),
    # Other languages.
    ("Der Aufzug ist kaputt", "Der Fahrstuhl ist defekt"),
    ("Ana no bebe leche", "Ana no toma leche"),
]

NEAR_MISSES = [
    ("Direct feedback is what Alex avoids", "Alex prefers direct feedback"),
    ("It is Mara who likes Gus", "It is Gus who likes Mara"),
    ("It is Mara that Gus likes", "Mara likes Gus"),
    ("It is Mara that Gus wants to like", "Mara wants to like Gus"),
    ("Tea is what Ida likes", "Coffee is what Ida likes"),
    ("If it rains, Bo swims", "If Bo swims, it rains"),
    ("When Ida sings, Bo leaves", "Ida sings when Bo leaves"),
    ("Because Ida left, Bo sings", "Because Bo sings, Ida left"),
    ("Ida left because Bo sings", "Ida left, so Bo sings"),
    ("The attic is cleaned by Ann for Bo", "Ann and Bo clean the attic"),
    ("Omar, a carpenter from Leeds, repairs chairs", "Omar, a carpenter, repairs chairs from Leeds"),
    ("The list that Ida wrote is on the wall", "Ida wrote the list on the wall"),
    ("Alex would rather have tea than coffee", "Alex prefers coffee to tea"),
    ("Alex likes tea better than coffee", "Alex likes coffee better than tea"),
    ("Alex prefers tea to coffee", "Alex likes tea"),
    ("Alex prefers tea", "Alex does not like tea"),
    ("Alex prefers tea", "Alex would like tea"),
    ("Ida plays the cello, not the violin", "Ida plays the violin, not the cello"),
    ("The shed is to be locked", "The shed is locked"),
    ("Gus needs to wash", "Gus needs washing"),
    ("Ida likes to paint", "Ida likes the painting"),
    ("The cat has been feeding since May", "The cat has been fed since May"),
    ("Nadia turns the radio on at night", "Nadia turns off the radio at night"),
    ("Nadia turned to Omar", "Nadia switched to Omar"),
    ("The film is at eight", "The film ends at eight"),
    ("The film starts at eight", "The film ends at eight"),
    ("Rosa is a teacher", "Rosa has a teacher"),
    ("There is a bench in the garden", "The garden has no bench"),
    ("The mill belongs to Rosa", "The mill owns Rosa"),
    ("The mill is going to town", "The mill will town"),
    ("Bo never forgets to lock up", "Bo always forgets to lock up"),
    ("Ida is younger than Bo", "Bo is younger than Ida"),
    ("Ida is younger than Bo", "Ida is older than Bo"),
    ("The rent rose from 700 to 750 euros", "The rent rose from 750 to 700 euros"),
    ("Two in three guests left early", "Two or three guests left early"),
    ("Payments are due within a month", "Payments are due within a week"),
]


@pytest.mark.parametrize(("existing", "new"), SAME)
def test_turns_of_phrase_merge(existing: str, new: str) -> None:
    assert verdict(existing, new) == "merge"
    assert verdict(new, existing) == "merge"


@pytest.mark.parametrize(("existing", "new"), NEAR_MISSES)
def test_their_near_misses_do_not(existing: str, new: str) -> None:
    assert verdict(existing, new) != "merge"
    assert verdict(new, existing) != "merge"


@pytest.mark.parametrize(("existing", "new"), [("Alex prefers quiet rooms", "Alex loves quiet rooms")])
def test_liking_and_preferring_are_never_told_apart(existing: str, new: str) -> None:
    assert verdict(existing, new) in {"review", "merge"}


def test_a_question_stays_as_it_is() -> None:
    texts = ("What Ida likes is tea?", "If it rains, who swims?")
    assert reworded(*texts) == texts


def test_two_names_that_are_one_merge_whatever_the_embedder_says() -> None:
    found = judge(
        Statement("Theodora Winter hates being disturbed at lunch", "Preference"),
        Statement("Dora can't bear disturbance at lunch", "Preference"),
        similarity=0.55,
        thresholds=THRESHOLDS,
        recent=False,
        aliases=Aliases([("Theodora Winter", "Theodora Winter"), ("Theodora Winter", "Dora")]),
    )
    assert found.verdict == "merge"
