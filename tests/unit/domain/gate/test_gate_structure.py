"""Pairs whose content words agree and whose small words, order or verb forms say another thing."""

from __future__ import annotations

import pytest

from memory_os.domain.gate.judging import Aliases, Statement, Thresholds, Verdict, judge

THRESHOLDS = Thresholds(recent=0.7, older=0.75, review=0.5)


def verdict(existing: str, new: str) -> Verdict:
    return judge(
        Statement(existing, "Attribute"),
        Statement(new, "Attribute"),
        similarity=0.97,
        thresholds=THRESHOLDS,
        recent=False,
        aliases=Aliases(),
    ).verdict


NEVER_MERGED = {
    "scope": [
        ("The board promised not to raise the rent", "The board did not promise to raise the rent"),
        ("Ida decided not to go", "Ida did not decide to go"),
        ("Not all rooms have a window", "All rooms do not have a window"),
        ("Only Ida eats fish on Fridays", "Ida eats fish only on Fridays"),
        ("Only she eats fish", "She eats only fish"),
        ("Ida almost lost all the money", "Ida lost almost all the money"),
        ("Er versprach, nicht zu kommen", "Er versprach nicht, zu kommen"),
        ("Il a décidé de ne pas partir", "Il n'a pas décidé de partir"),
        ("Decidió no vender la casa", "No decidió vender la casa"),
        ("Он решил не продавать дом", "Он не решил продавать дом"),
        ("他决定不卖房子", "他没决定卖房子"),
        ("只有她吃鱼", "她只吃鱼"),
        ("全員が来なかった", "全員は来なかった"),
    ],
    "duty": [
        ("You don't have to lock the gate", "You must not lock the gate"),
        ("Staff are not obliged to park here", "Staff must not park here"),
        ("Visitors are not required to sign", "Visitors are required not to sign"),
        ("Er muss die Tür nicht schließen", "Er darf die Tür nicht schließen"),
    ],
    "person": [
        ("Ida lost her keys", "Ida lost his keys"),
        ("My sister lives in Rome", "His sister lives in Rome"),
        ("I owe you 20 euros", "You owe me 20 euros"),
        ("He asked me to call", "I asked him to call"),
        ("Er hat seinen Schlüssel verloren", "Er hat ihren Schlüssel verloren"),
        ("Ma sœur habite à Nice", "Ta sœur habite à Nice"),
        ("我的妹妹住在上海", "他的妹妹住在上海"),
        ("私の妹は東京に住む", "彼の妹は東京に住む"),
    ],
    "owner": [
        ("Ann's sister called Bo", "Ann called Bo's sister"),
        ("Ida heard from Ruth's boss that the mill closes", "Ida heard from Ruth that her boss's mill closes"),
        ("El hermano de Ana llamó a Luis", "Ana llamó al hermano de Luis"),
        ("Der Hund der Nachbarin bellt", "Die Nachbarin des Hundes bellt"),
        ("Ida and Ruth are Gus's cousins", "Ida and Gus are Ruth's cousins"),
        ("Ida is Gus's tutor", "Gus is Ida's tutor"),
        ("The house dog sleeps", "The dog house sleeps"),
    ],
    "small word": [
        ("Gus went into the shed", "Gus went out of the shed"),
        ("Gus looked up the price", "Gus looked at the price"),
        ("Ida searched the room", "Ida searched for the room"),
        ("Ida believes Ruth", "Ida believes in Ruth"),
        ("Ida left the club", "Ida left for the club"),
        ("Ida paints with the help of Ruth", "Ida helps Ruth paint"),
        ("The man with the dog saw the boy", "The man saw the boy with the dog"),
        ("Большая собака гонит маленькую кошку", "Маленькая собака гонит большую кошку"),
        ("The key opens the door that Gus painted", "Gus painted the key that opens the door"),
        ("Few guests came", "A few guests came"),
    ],
    "amount": [
        ("Cut the dose by 20 mg", "Cut the dose to 20 mg"),
        ("Finish by Friday", "Finish on Friday"),
        ("Travel over 800 needs approval", "Travel of at least 800 needs approval"),
        ("Four of the six boats leak", "Six of the four boats leak"),
        ("The meeting is on Monday the 3rd", "The meeting is on the third Monday"),
        ("Die Miete stieg um 50 Euro", "Die Miete stieg auf 50 Euro"),
        ("Le prix a baissé de 20 euros", "Le prix a baissé à 20 euros"),
        ("Цена выросла на 20 рублей", "Цена выросла до 20 рублей"),
        ("价格涨了20元", "价格涨到20元"),
        ("家賃が五千円上がった", "家賃が五千円に上がった"),
        ("가격이 2000원 올랐다", "가격이 2000원으로 올랐다"),
        ("कीमत 20 रुपये बढ़ी", "कीमत 20 रुपये तक बढ़ी"),
        ("店は九時まで開いている", "店は九時から開いている"),
    ],
    "clause": [
        ("The alarm wakes the baby, so it cries", "The baby cries, so the alarm wakes it"),
        ("If it rains the market closes", "If the market closes it rains"),
        ("Water the fern when the soil is dry", "The soil is dry when you water the fern"),
        ("Students who pass the exam get a card", "Students who get a card pass the exam"),
        ("At noon feed the cat, at night the dog", "Feed the dog at noon and the cat at night"),
    ],
    "form": [
        ("Ida should have paid", "Ida should pay"),
        ("Ida may be late", "Ida will be late"),
        ("Ida can swim", "Ida swims"),
        ("Ida is feeding", "Ida is fed"),
        ("Ida stopped to smoke", "Ida stopped smoking"),
        ("Ida is used to rising early", "Ida used to rise early"),
        ("Ida has the boat sold", "Ida has sold the boat"),
    ],
}

MERGED = [
    ("The bus was late owing to the snow", "The bus was late because of the snow"),
    ("Before the fair starts, Gus needs a permit", "Gus needs a permit before the fair starts"),
    ("Ida pays the workshop rent", "Ida pays the rent for the workshop"),
    ("Gus shares a tent with Ruth", "Ruth and Gus share a tent"),
    ("Gus drinks his tea without sugar", "Gus takes tea with no sugar"),
    ("The pond is kept at 9 degrees Celsius", "The pond is kept at 9 °C"),
    ("The hike takes an hour and a half", "The hike lasts ninety minutes"),
    ("Ida and Gus are colleagues", "Gus is Ida's colleague"),
    ("Pupils travel for free", "Pupils travel free of charge"),
]

NAMED: list[tuple[Verdict, str, str]] = [
    ("contradict", "The raft carries at most six people", "The raft carries at least six people"),
    ("contradict", "Ida overrates the choir", "Ida underrates the choir"),
    ("supersede", "Gus supports the new bridge", "Gus supported the new bridge but has changed his mind"),
]


@pytest.mark.parametrize(("existing", "new"), [pair for pairs in NEVER_MERGED.values() for pair in pairs])
def test_what_small_words_change_never_merges(existing: str, new: str) -> None:
    assert verdict(existing, new) != "merge"
    assert verdict(new, existing) != "merge"


@pytest.mark.parametrize(("existing", "new"), MERGED)
def test_small_words_that_change_nothing_still_merge(existing: str, new: str) -> None:
    assert verdict(existing, new) == "merge"
    assert verdict(new, existing) == "merge"


@pytest.mark.parametrize(("expected", "existing", "new"), NAMED)
def test_opposite_bounds_and_changed_minds_are_named(expected: Verdict, existing: str, new: str) -> None:
    assert verdict(existing, new) == expected
