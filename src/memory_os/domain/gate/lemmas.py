"""One form for the inflected forms of a word, by language: cautious rules, a table of irregular forms, and Snowball."""

# ruff: noqa: PLR2004, PLR0911, E501, SIM905 - how many letters a rule needs is plain where it stands; lists of words

from __future__ import annotations

import re
from functools import lru_cache
from threading import Lock
from typing import Any, Final
from unicodedata import normalize

import snowballstemmer  # type: ignore[import-untyped]  # it ships no types

from memory_os.domain.gate.word_lists import words

_STEMMERS: Final = {
    "en": "english", "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese",
    "nl": "dutch", "ru": "russian", "el": "greek", "ar": "arabic", "hi": "hindi",
}  # fmt: skip

_IRREGULAR: Final = {
    form: base
    for line in """
    be:am,is,are,was,were,been,being have:has,had,having do:does,did,done go:goes,went,gone say:said make:made
    take:took,taken come:came see:saw,seen get:got,gotten give:gave,given find:found think:thought tell:told become:became
    leave:left feel:felt bring:brought begin:began,begun keep:kept hold:held write:wrote,written stand:stood hear:heard
    mean:meant meet:met run:ran pay:paid sit:sat speak:spoke,spoken lead:led grow:grew,grown lose:lost fall:fell,fallen
    send:sent build:built understand:understood draw:drew,drawn break:broke,broken spend:spent rise:rose,risen drive:drove,driven
    buy:bought wear:wore,worn choose:chose,chosen eat:ate,eaten drink:drank,drunk sing:sang,sung swim:swam,swum fly:flew,flown
    know:knew,known throw:threw,thrown catch:caught teach:taught sell:sold sleep:slept win:won fight:fought lend:lent
    forget:forgot,forgotten ride:rode,ridden wake:woke,woken steal:stole,stolen hide:hid,hidden bite:bit,bitten lay:laid
    lie:lay,lain seek:sought sweep:swept freeze:froze,frozen shake:shook,shaken swear:swore,sworn tear:tore,torn
    show:shown shrink:shrank,shrunk sink:sank,sunk spring:sprang,sprung strike:struck stick:stuck learn:learnt dream:dreamt
    burn:burnt spell:spelt deal:dealt feed:fed bleed:bled breed:bred shoot:shot light:lit child:children man:men woman:women
    foot:feet tooth:teeth mouse:mice goose:geese person:persons wife:wives knife:knives life:lives half:halves leaf:leaves
    shelf:shelves self:selves thief:thieves loaf:loaves wolf:wolves analysis:analyses basis:bases criterion:criteria
    good:goods well:wells prove:proven mow:mown sew:sewn hang:hung bind:bound wind:wound grind:ground undergo:underwent
    retire:retires fire:fires die:dies,died,dying tie:tied,tying withdraw:withdrew,withdrawn overcome:overcame
    """.split()
    for base, _, forms in [line.partition(":")]
    for form in forms.split(",")
}

_PAST: Final = words(
    """
    was were had did went said made took came saw got gave found thought told became left felt brought began
    kept wrote stood heard met ran paid sat spoke led grew lost fell sent built drew broke spent rose drove
    bought wore chose ate drank sang swam flew knew threw caught taught sold slept won fought lent forgot
    rode woke stole hid sought swept froze shook swore tore shrank sank sprang struck dealt fed shot
    withdrew underwent learnt burnt spelt dreamt
    """
)

_ING_KEEP: Final = words(
    """
    during nothing something anything everything evening morning string spring king ring thing bring sing
    wing swing building ceiling wedding sibling sterling cling sling darling pudding inning outing
    """
)
_ED_KEEP: Final = words(
    """
    need feed seed speed bed red shed wed indeed exceed proceed succeed breed bleed hundred embed weed bored
    """
)
_S_KEEP: Final = words(
    """
    always this his its us bus gas plus lens class business process access less news thus as is was has yes
    analysis basis across series species perhaps besides towards mathematics physics campus virus status
    bonus focus chaos crisis christmas diabetes tennis chess address progress success glass grass mess boss
    loss dress press stress cross pass miss guess discuss express possess assess illness fitness witness
    kindness sales
    """
)

_stemming = Lock()
_marks = re.compile("[\u064b-\u065f\u0670\u0640]")
_alef = str.maketrans("\u0623\u0625\u0622\u0671\u0649\u0629", "\u0627\u0627\u0627\u0627\u064a\u0647")
_doubled = re.compile(r"([bdfgklmnprtvz])\1$")
_vowel = re.compile("[aeiouy]")


def fold_word(text: str, language: str) -> str:
    """Spelling that a language leaves to taste: Arabic vowel signs and alefs, the Russian yo, the Hindi nukta."""
    if language == "ar":
        return _marks.sub("", text).translate(_alef)
    if language == "ru":
        return text.replace("\u0451", "\u0435")
    if language == "hi":
        return normalize("NFC", normalize("NFD", text).replace("\u093c", ""))
    return text


@lru_cache(maxsize=32_768)
def lemma(word: str, language: str) -> str:
    """The form that inflected forms of a word in lower case share; the word itself where no rule is sure."""
    if language == "en":
        return _english(word)
    if language == "ar":
        return _arabic(word)
    return stem(word, language)


@lru_cache(maxsize=32_768)
def stem(word: str, language: str) -> str:
    """Snowball's stem, which joins derived words too (allergy and allergic); the word where there is no stemmer."""
    name = _STEMMERS.get(language)
    if name is None or len(word) < 3:
        return word
    with _stemming:  # A stemmer keeps the word it works on.
        return str(_stemmer(name).stemWord(word))


@lru_cache(maxsize=len(_STEMMERS))
def _stemmer(name: str) -> Any:  # noqa: ANN401 - Snowball has no types
    return snowballstemmer.stemmer(name)


def is_past(word: str) -> bool | None:
    """Whether an English form is a past tense; None where it can be no verb's finite form that tells."""
    if word in _PAST or (word.endswith("ed") and word not in _ED_KEEP and len(word) > 4):
        return True
    return False if word.endswith("s") and not word.endswith("ss") else None


def _english(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    size = len(word)
    if size <= 3 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("s") and word not in _S_KEEP and not word.endswith(("ss", "us", "is")):
        if word.endswith("ies") and size > 4:
            return word[:-3] + "y"
        if word.endswith(("ches", "shes", "xes", "sses", "zzes")):
            return word[:-2]
        return _english(word[:-1])
    if word.endswith("ied") and size > 4:
        return word[:-3] + "y"
    if word.endswith("ing") and size > 5 and word not in _ING_KEEP and _vowel.search(word[:-3]):
        return _final_e(_doubled.sub(r"\1", word[:-3]) if not word[:-3].endswith(("ll", "ss")) else word[:-3])
    if word.endswith("eed"):
        return word[:-1] if word in {"agreed", "disagreed", "freed", "guaranteed", "refereed"} else word
    if word.endswith("ed") and size > 4 and word not in _ED_KEEP and _vowel.search(word[:-2]):
        return _final_e(_doubled.sub(r"\1", word[:-2]) if not word[:-2].endswith(("ll", "ss")) else word[:-2])
    return _final_e(word)


def _final_e(word: str) -> str:
    # closes, closed, closing and close meet without their e.
    return word[:-1] if word.endswith("e") and len(word) > 3 and not word.endswith(("ee", "ie")) else word


def _arabic(word: str) -> str:
    for prefix in (
        "\u0648\u0627\u0644",
        "\u0628\u0627\u0644",
        "\u0641\u0627\u0644",
        "\u0643\u0627\u0644",
        "\u0627\u0644",
        "\u0644\u0644",
    ):
        if word.startswith(prefix) and len(word) > len(prefix) + 1:
            return word[len(prefix) :]
    return word
