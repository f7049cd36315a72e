"""Statements of what has one value at a time: a new value is named as one, and nothing else is."""

from __future__ import annotations

from itertools import permutations

import pytest

from memory_os.domain.gate.judging import Aliases, Statement, Thresholds, judge
from memory_os.domain.gate.single_values import apart, new_value, of_one_property

NOBODY = Aliases()
THRESHOLDS = Thresholds(recent=0.7, older=0.75, review=0.45)


def verdict(existing: str, new: str, label: str = "Attribute") -> tuple[str, str]:
    found = judge(
        Statement(existing, label),
        Statement(new, label),
        similarity=0.8,
        thresholds=THRESHOLDS,
        recent=True,
        aliases=NOBODY,
    )
    return found.verdict, found.rule


CHANGED = [
    ("Ann works at Foss", "Ann works at Brae"),
    ("Ann works at Foss", "Ann now works at Brae."),
    ("Ann works at Foss", "Ann has left Foss and started at Brae"),
    ("Ann works at Foss", "Ann has left Foss for Brae"),
    ("Ann lives in Graz", "Ann moved to Linz."),
    ("I live in Graz", "I moved to Linz"),
    ("Ann's manager is Bo", "Cy is the new manager of Ann"),
    ("Ann's boss is Bo", "Ann now reports to Cy"),
    ("The Kestrel lamp costs 89 euros", "The price of the Kestrel lamp has gone up to 99 euros"),
    ("The Kestrel lamp is at version 1.4", "The Kestrel lamp was upgraded from version 1.4 to version 2.0"),
    ("The status of Harbor is planned", "Harbor's status is released"),
    ("The status of Harbor is planned", "Harbor went from planned to released"),
    ("The repository belongs to Ann", "The repository is now owned by Bo"),
    ("The print team has taken over Harbor", "The archive team owns Harbor"),
    ("Ann sits in room 101", "The desk of Ann was moved to room 117"),
    ("The extension of Ann is 2207", "Ann can be reached at extension 3118 from now on"),
    ("Harbor is due on 3 March", "The deadline for Harbor was pushed to 8 April"),
    ("Ann's favourite colour is red", "Ann's favorite color is now blue"),
    ("The password of the router is swan", "The password of the router was changed to heron"),
    ("Ann drinks tea at breakfast", "Ann has switched from tea to coffee at breakfast"),
    ("The CEO of Foss is Ann", "Bo is the CEO of Foss"),
    ("Harbor is hosted in Rostock", "Harbor is hosted in Lindau"),
    ("The chess club meets on Tuesdays", "From next month the chess club meets on Fridays instead"),
]


@pytest.mark.parametrize(("existing", "new"), CHANGED)
def test_another_value_of_the_same_property_is_a_new_one(existing: str, new: str) -> None:
    assert new_value(existing, new, NOBODY)
    assert verdict(existing, new)[0] == "supersede"


BESIDE = [
    # another thing, another property
    ("Ann works at Foss", "Bo works at Brae"),
    ("Ann works at Foss", "Ann administers the repository of Brae"),
    ("Ann works at the harbour", "Ann works for Foss"),
    ("Ann owns the boat", "Ann owns the house"),
    ("Room 101 is owned by Foss", "Room 102 is owned by Brae"),
    ("The price of tea in Graz is 3 euros", "The price of tea in Linz is 4 euros"),
    ("The start date of the lease is 3 May", "The end date of the lease is 3 June"),
    ("Ann's favourite colour is red", "Ann's favourite food is rice"),
    ("The manager of Ann is Bo", "The manager of Bo is Ann"),
    ("Ann reports to Bo", "Bo reports to Ann"),
    # several values at once
    ("Ann works at Foss on Mondays", "Ann works at Brae on Tuesdays"),
    ("Ann works at Foss and Brae", "Ann works at Skerry"),
    ("Ann's brother is Bo", "Ann's brother is Cy"),
    ("Ann joined the choir", "Ann joined the rowing club"),
    ("The app runs on Linux", "The app runs on Windows"),
    ("A lamp costs 10 euros", "A lamp costs 20 euros"),
    # the same value, or one that may be the same
    ("Ann lives in Graz", "Ann now lives in Graz."),
    ("Ann reports to Noor", "Ann reports to Noor Haddad"),
    ("The lamp costs 89 euros", "The lamp costs 89 EUR"),
    ("The report is due on 3 March", "The report is due on March 3"),
    ("The report is due on Friday", "The report is due on 5 June"),
    # denied, asked, past, planned, told of somebody
    ("Ann lives in Graz", "Ann does not live in Linz"),
    ("Ann lives in Graz", "Does Ann live in Linz?"),
    ("Ann lives in Graz", "Ann used to live in Linz"),
    ("Ann lives in Graz", "Ann might move to Linz"),
    ("Ann lives in Graz", "Ann plans to move from Graz to Linz"),
    ("She lives in Graz", "She lives in Linz"),
    # another sort of value
    ("The meeting has moved to Friday", "The meeting has moved to Graz"),
    ("Ann lives in Graz", "Ann has moved to the payments team"),
    ("Ann works at Foss", "Ann has left Graz for Linz"),
]


@pytest.mark.parametrize(("one", "other"), BESIDE)
def test_what_may_hold_beside_it_is_no_new_value(one: str, other: str) -> None:
    assert new_value(one, other, NOBODY) is None
    assert new_value(other, one, NOBODY) is None


def test_two_names_of_one_are_one() -> None:
    aliases = Aliases([("1", "Maggie"), ("1", "Margarethe Olsson")])
    assert new_value("Maggie lives in Graz", "Margarethe Olsson lives in Linz", aliases)
    assert new_value("Ann reports to Maggie", "Ann reports to Margarethe Olsson", aliases) is None


def test_an_event_has_no_value() -> None:
    assert verdict("Ann moved to Graz", "Ann moved to Linz", label="Event")[0] == "distinct"


OF_ONE_THING = [
    "Ada Falk works at Dunlin Optics.",
    "Ada Falk lives in Graz.",
    "Ada Falk now sits in room 117.",
    "The extension of Ada Falk is now 2207.",
    "Jonas Feld is the new manager of Ada Falk.",
    "Ada Falk keeps two greyhounds.",
    "Ada Falk is allergic to hazelnuts.",
]


@pytest.mark.parametrize(("existing", "new"), list(permutations(OF_ONE_THING, 2)))
def test_what_is_said_of_one_thing_takes_no_place_from_another_claim(existing: str, new: str) -> None:
    assert verdict(existing, new)[0] in {"distinct", "review"}


OF_TWO_THINGS = [
    ("Ada Falk works at Dunlin Optics.", "Edda Falk now works at Dunlin Optics."),
    ("Ada Falk lives in Graz.", "Ada Borg now lives in Linz."),
    ("Ada Falk reports to Noor.", "Ada Borg now reports to Dara."),
    ("The chess council meets on Tuesdays.", "The chess circle meets on Saturdays."),
    ("The chess council has 12 members.", "The chess club now has 19 members."),
    ("The Plover lamp costs 89 euros.", "The Plover router costs 119 euros."),
    ("The price of the Plover lamp was changed to 95 euros.", "The Plover router now costs 119 euros."),
    ("The status of Project Quarry West is approved.", "The status of Project Quarry North is now cancelled."),
    ("The rowing circle has 12 members.", "The rowing circle was founded by two sisters."),
]


@pytest.mark.parametrize(("existing", "new"), OF_TWO_THINGS)
def test_what_is_said_of_another_thing_takes_no_place(existing: str, new: str) -> None:
    assert verdict(existing, new)[0] in {"distinct", "review"}
    assert verdict(new, existing)[0] in {"distinct", "review"}


def test_what_stands_apart_is_told_by_what() -> None:
    assert apart("Ann lives in Graz", "Ann works at Foss", NOBODY) == ("other_property", "property: home / workplace")
    assert apart("Ann lives in Graz", "Bo lives in Graz", NOBODY) == ("other_subject", "subject: ann / bo")
    assert apart("Ann lives in Graz", "Ann Falk lives in Linz", NOBODY) is None
    assert apart("Ann lives in Graz", "Ann keeps bees", NOBODY) is None


def test_of_one_property_be_the_values_equal_or_not() -> None:
    assert of_one_property("Ann lives in Graz", "Ann has moved to Graz", NOBODY)
    assert of_one_property("Ann lives in Graz", "Ann now lives in Linz", NOBODY)
    assert not of_one_property("Ann lives in Graz", "Bo lives in Graz", NOBODY)
    assert not of_one_property("Ann keeps bees", "Ann keeps bees", NOBODY)
