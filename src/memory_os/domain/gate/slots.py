"""Who does what to whom, as far as small words, particles and order say: the slot of each item."""

# ruff: noqa: RUF001, SIM905, E501 - letters of other scripts are meant; lists of words

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from memory_os.domain.gate.lemmas import lemma
from memory_os.domain.gate.word_lists import words

if TYPE_CHECKING:
    from memory_os.domain.gate.reading import Item
    from memory_os.domain.gate.tokens import Token

SLOT_WORDS: Final[dict[str, dict[str, str]]] = {
    language: {word: slot for slot, words in slots.items() for word in words.split()}
    for language, slots in {
        "de": {
            "in": "in im",
            "von": "von vom",
            "an": "an",
            "mit": "mit",
            "durch": "durch",
            "than": "als",
            "zu": "zu zum zur",
            "D": "dem",
            "O": "den",
        },
        "fr": {
            "in": "en dans",
            "a": "à au aux",
            "de": "de du d des",
            "par": "par",
            "avec": "avec",
            "than": "que qu",
            "pour": "pour",
        },
        "es": {"in": "en", "a": "a al", "de": "de del", "por": "por", "con": "con", "than": "que", "para": "para"},
        "it": {
            "in": "in nel nella",
            "a": "a al alla",
            "da": "da dal dalla",
            "di": "di del della",
            "con": "con",
            "than": "che",
        },
        "pt": {"in": "em no na", "a": "a ao à", "de": "de do da", "por": "por pelo pela", "com": "com", "than": "que"},
        "nl": {"in": "in", "aan": "aan", "van": "van", "door": "door", "met": "met", "than": "dan"},
        "ru": {"in": "в во на", "у": "у", "с": "с со", "от": "от", "к": "к", "than": "чем", "для": "для", "из": "из"},
        "el": {"σε": "στον στην στη στο σε", "από": "από", "με": "με", "τον": "τον την", "του": "του της"},
        "ar": {"الى": "الى ل", "من": "من", "مع": "مع", "على": "على"},
        "zh": {"by": "被 由", "to": "给 向 对", "obj": "把 将", "from": "从", "with": "跟 和 与", "than": "比"},
    }.items()
}

_TRAILING: Final = {
    "ja": {
        "S": "が",
        "T": "は",
        "O": "を",
        "D": "に へ",
        "F": "から",
        "than": "より",
        "and": "と",
        "of": "の",
        "at": "で",
    },
    "hi": {"S": "ने", "D": "को", "F": "से", "of": "का की के", "in": "में", "on": "पर"},
}
_trailing_words: Final = {
    language: {word: slot for slot, words in slots.items() for word in words.split()}
    for language, slots in _TRAILING.items()
}

_JOSA: Final = {
    "S": "께서 이 가", "T": "은 는", "O": "을 를", "D": "에게 한테 께", "F": "에게서 한테서 로부터 부터", "than": "보다", "and": "와 과 하고 이랑 랑",
    "of": "의", "at": "에서 에", "to": "으로 로", "until": "까지", "too": "도", "only": "만", "per": "마다", "be": "이다 입니다 이면 이라 이고",
}  # fmt: skip
_SHORTEST_TWICE: Final = 3
"""Shorter words have no second particle."""
_josa: Final = sorted(
    ((suffix, slot) for slot, words in _JOSA.items() for suffix in words.split()), key=lambda pair: -len(pair[0])
)
_ENDINGS: Final = sorted(
    """하는 한다 합니다 했다 했습니다 하러 하고 하며 하지 하기 할 한 해 하여 하면 하려고 하고있다 된다 됩니다 되었다 되는 되고 되기 된 였다 었다 았다 는다
    습니다 ㅂ니다 어 아 고 지 기 러 면 며 게 다 는 은 을 인 이다 있다 이었다""".split(),
    key=len,
    reverse=True,
)

_PREPOSITIONS: Final = words(
    """
    to from by for with into onto of in on at before after until till since under over above below between
    against about through during than per via without within towards toward behind beside inside outside
    near as off across along around among except upon concerning regarding following
    """
)
_BE: Final = words("is are was were be been being 's 're am get gets got")
_HELPERS: Final = _BE | words(
    """
    has have had do does did will would can could shall should may might must 'll 'd 've cannot ca wo to
    """
)
_LONGEST_VERB: Final = 5
"""Tokens that a verb and its helpers take: has not always been paid."""
_ADVERBS: Final = frozenset({"not", "n't", "never", "always", "usually", "also", "often", "now"})
_CLAUSE_STARTS: Final = frozenset(", ; : ( ) . that which who because when if while but so".split())
_SAME_PARTICIPLES: Final = words("run put cut set read let hit hurt shut split spread cast overrun overridden")
_DETERMINERS: Final = words(
    """
    the a an this that these those his her its their our my your every each no some any all
    """
)
VERBS: Final = frozenset(
    lemma(verb, "en")
    for verb in """
    accept add advise agree allow answer apply approve arrange arrive ask assign attend avoid bake beat become begin believe belong bill bite
    blame block book borrow break bring build buy call cancel carry change chase check choose clean close coach collect come complain
    complete confirm consider contact contain cook cost cover create criticise cut deal decide defeat delete deliver depend
    deploy describe design dislike divorce do drink drive drop eat email employ end enjoy envy escalate evaluate expect explain export fail
    fear feed feel fight file fill find finish fire fix fly follow forget forgive forward fund get give go govern grade grant grow guide handle
    happen hate have hear help hide hire hit hold host hug hurt import inform inherit inspect install interview introduce
    invest invite invoice join keep kiss know lead learn leave lend let like listen live look lose love make manage marry
    match mean meet melt mentor merge miss mention move need notify offer open order outrank overtake owe own paint pass pay phone pick plan play prefer
    prepare prescribe present prevent print produce promise promote protect provide publish push put quit raise read receive recommend
    redirect reject release remember remind remove rent repair replace reply report request rescue reserve resign respect return review ride ring run
    save say see sell send serve share ship show sign sing sit skip sleep smoke speak spend sponsor stand start stay stop study
    sublet submit succeed sue supervise supply support swim take talk teach tell test thank think train translate transfer travel
    treat trust try turn type understand update use visit vote wait wake walk want warn wash watch wear win work worry write
    manages precede depend require trigger feed call import export copy sync mirror push pull override include extend wrap cause
    """.split()
)


def korean_parts(word: str) -> tuple[str, str]:
    """A Korean word without its particle or ending, and the slot that the particle says."""
    for suffix, slot in _josa:
        if word.endswith(suffix) and len(word) > len(suffix):
            base = word[: -len(suffix)]
            if slot in {"at", "until", "of", "to", "D"}:
                base, _ = (
                    korean_parts(base)
                    if base.endswith(("까지", "부터")) and len(base) > _SHORTEST_TWICE
                    else (base, "")
                )
            return base, slot
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) > len(ending):
            return word[: -len(ending)], ""
    return word, ""


def trailing_slots(items: list[Item], found: list[Token], language: str) -> list[Item]:
    """The particle after each item (Japanese, Hindi) is its slot."""
    words = _trailing_words[language]
    slotted = []
    for item in items:
        at = item.end
        slot = ""
        while at < len(found) and at < item.end + 3:
            low = found[at].low
            pair = low + (found[at + 1].low if at + 1 < len(found) else "")
            if pair in words or low in words:
                slot = words.get(pair) or words[low]
                break
            if language == "hi" or found[at].sort != "letter":
                break
            at += 1
        slotted.append(replace(item, slot=slot))
    return slotted


def english_slots(items: list[Item], found: list[Token]) -> tuple[list[Item], bool, int]:
    """Slots of English items: the preposition before them, else S before the main verb and O after it.

    Also whether the main clause is a passive, and the place of its verb (-1 for none).
    """
    verb, passive = _main_verb(items, found)
    slotted = _Walk(items, found, verb).slotted()
    if passive:
        slotted = [replace(item, slot={"S": "O", "by": "S"}.get(item.slot, item.slot)) for item in slotted]
    return slotted, passive, verb


class _Walk:
    """Goes through the tokens of an English text and gives each item the slot that is open where it stands."""

    def __init__(self, items: list[Item], found: list[Token], verb: int) -> None:
        self._by_place = {item.place: item for item in items}
        self._found = found
        self._verb = verb
        self._prefers = any("prefer" in token.low or token.low == "rather" for token in found)
        self._slot = ""
        self._filled = False
        """Whether the open slot has an item already."""
        self._instead = False
        self._joined = False

    def slotted(self) -> list[Item]:
        """The items with their slots, in order."""
        done: list[Item] = []
        at = 0
        while at < len(self._found):
            item = self._by_place.get(at)
            self._open(at, item)
            if item is None:
                at += 1
                continue
            named = item.sort == "name" and bool(done) and done[-1].sort not in {"name", "first"}
            if self._slot and self._filled and named and not self._joined:
                self._slot = ""  # "On the third of May Olga sings": no comma, but a new group.
            done.append(replace(item, slot=self._slot_of(item), joined=self._joined))
            self._filled, self._joined = True, False
            if self._low(item.end) == "'s":
                self._slot, self._filled = "", False
            at = max(at + 1, item.end)
        return done

    def _low(self, at: int) -> str:
        return self._found[at].low if at < len(self._found) else ""

    def _open(self, at: int, item: Item | None) -> None:
        """What a token does to the open slot."""
        low = self._low(at)
        if low in _PREPOSITIONS and (item is None or item.sort in {"word", "mark"}):
            again = self._slot == "than" and not self._filled
            than = low == "than" or (self._prefers and low in {"over", "to"}) or (self._instead and low == "of")
            self._slot = "than" if again or than else low
            self._filled = self._instead = False
        elif low in {"instead", "rather"}:
            self._instead = True
        elif low in _CLAUSE_STARTS or (low != "to" and (low in _HELPERS or at == self._verb)):
            self._slot, self._filled = "", False
        elif low in {"and", "or", "&"}:
            self._joined = True

    def _slot_of(self, item: Item) -> str:
        if self._low(item.end) == "'s" and item.sort in {"name", "first", "word"}:
            return "of"
        if self._slot:
            return self._slot
        if self._verb < 0 or item.place < self._verb:
            return "S"
        return "V" if item.place == self._verb else "O"


def _main_verb(items: list[Item], found: list[Token]) -> tuple[int, bool]:
    """The place of the main verb, and whether it is a passive."""
    starts = {item.place for item in items}
    seen_noun = False
    for at, token in enumerate(found):
        if token.low in _HELPERS and token.low not in {"to", "'s"} and seen_noun:
            passive = _is_passive(found, at)
            step = at + 1
            while step < min(len(found), at + _LONGEST_VERB) and _in_verb(found[step].low):
                step += 1
            helped = step < len(found) and (passive or found[step].lemma in VERBS)
            return (step if helped else at), passive
        if (seen_noun or at == 0) and _is_verb(found, at):
            return at, False
        seen_noun = seen_noun or at in starts
    # No known verb: the first small word on -s or -ed after a name.
    for at in range(1, len(found)):
        low = found[at].low
        after_name = found[at - 1].capital and not found[at].capital
        if after_name and (low.endswith("ed") or (low.endswith("s") and len(low) > 3)):  # noqa: PLR2004 - was, his
            return at, False
    return -1, False


def _is_verb(found: list[Token], at: int) -> bool:
    """Whether a known verb stands where a finite one can."""
    token = found[at]
    if token.sort != "word" or token.lemma not in VERBS or (token.capital and at):
        return False
    if at == 0:
        return not token.low.endswith(("s", "ing", "ed"))
    before = found[at - 1].low
    if before in _DETERMINERS or before in _PREPOSITIONS or before == "'s":
        return False
    # "The sound test has to wait": what a helper follows is a noun.
    helped = at + 1 < len(found) and found[at + 1].low in _HELPERS - {"to", "'s"}
    return not helped or token.low.endswith("s")


def _in_verb(low: str) -> bool:
    return low in _HELPERS or low in _ADVERBS or low.endswith("ly")


def _is_passive(found: list[Token], helper: int) -> bool:
    """Whether a form of be and a participle begin at a helper."""
    seen_be = False
    for token in found[helper : helper + _LONGEST_VERB + 1]:
        low = token.low
        if low in _BE and low != "'s":
            seen_be = True
        elif seen_be and _is_participle(token):
            return True
        elif not _in_verb(low):
            return False
    return False


def _is_participle(token: Token) -> bool:
    low = token.low
    irregular = low != token.lemma and token.lemma in VERBS and not low.endswith(("s", "ing"))
    return low.endswith("ed") or low in _SAME_PARTICIPLES or irregular
