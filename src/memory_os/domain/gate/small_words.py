"""The small words that say nothing, those that say the same as another, and those that part two statements."""

# ruff: noqa: RUF001, E501 - letters of other scripts are meant; lists of words

from __future__ import annotations

from typing import Final

from memory_os.domain.gate.word_lists import words

EMPTY: Final = {
    "en": words(
        """
        a an the this that these those is are was were be been being am 's 're 'm 've has have had having do does did doing
        it its itself there here will 'll shall then s o'clock and but can such according each other et though although roughly
        """
    ),
    "de": words(
        """
        der die das den dem des ein eine einen einem einer eines und aber es ist sind war waren wird werden wurde worden hat
        haben hatte habe da dass dann dort hier dieser diese dieses diesem diesen sich uhr selbst im in am an
        """
    ),
    "fr": words(
        "le la les l un une des du de d et mais ce cet cette ces c ça est sont était été être a ont avait avoir eu y on se s n ne en que qu en"
    ),
    "es": words(
        "el la los las lo un una unos unas de del y pero que se le les es son era está están estar ser fue ha han había haber hay este esta estos estas ese esa eso tiene tienen tener en"
    ),
    "it": words(
        "il lo la i gli le l un uno una di del dello della dei degli delle e ed ma che si è sono era essere ha hanno avere questo questa ci in nel nella"
    ),
    "pt": words(
        "o a os as um uma de do da dos das e mas que se é são era ser está estão estar foi tem têm ter há este esta isso em no na nos nas"
    ),
    "nl": words(
        "de het een 't en maar die dat dit deze er is was waren wordt worden werd heeft hebben had dan zich uur in van"
    ),
    "ru": words(
        "и а но же бы ли это этот эта эти тот то был была было были быть есть себя свой своя свои своего часов часа в во на"
    ),
    "el": words(
        "ο η το οι τα του της των τον την τη τους τις ένας μια μία ένα και κι πως ότι να θα είναι ήταν έχει έχουν είχε αυτός αυτή αυτό σε στο στη στην στον στους στις στα που"
    ),
    "ar": words("في و ان انه انها هذا هذه ذلك تلك كان كانت يكون تكون قد هناك ب به بها ل"),
    "hi": words(
        """
        का की के को में ने है हैं था थी थे हो होता होती होते और कि यह वह ये वे इस उस एक अपना अपनी अपने तो बजे रहा रही रहे गया गई
        गए जाता जाती जाते करता करती करते करना कर किया वाला वाली वाले पर भी ही
        """
    ),
}
"""Free words that may be on one side only. Those of place and of genitives in most languages are here, since there the
slots of names and the rules about quantities look at them."""


def _pairs(text: str) -> list[tuple[str, str]]:
    """Pairs from "a/b c/d"."""
    return [(one, other) for one, other in (pair.split("/") for pair in text.split())]


ALIKE: Final = {
    "en": _pairs(
        "than/over than/to than/of over/to about/on about/regarding about/concerning about/of about/concern about/concerns in/at into/in onto/on toward/towards to/towards in/of at/of on/of upon/on within/in along/across via/by since/because as/because because/so because/therefore since/so for/because if/whether up/upto around/about through/via near/by in/on in/during over/during around/at who/that which/that but/though but/although"
    ),
    "de": _pairs("weil/denn wenn/falls zu/zum zu/zur von/vom bei/beim daher/deshalb"),
    "fr": _pairs("à/au à/aux quand/lorsque chez/à dans/à car/puisque donc/alors"),
    "es": _pairs("a/al porque/pues"),
    "it": _pairs("a/al a/alla a/allo da/dal da/dalla su/sul su/sulla tra/fra"),
    "pt": _pairs("a/ao a/à a/aos por/pelo por/pela"),
    "nl": _pairs("want/omdat dus/dan"),
    "ru": _pairs("с/со к/ко о/об"),
}
"""Small words that may stand for each other where each side has one of them."""

_PHRASES: Final = {
    "because": "because of, owing to, due to, on account of, thanks to, on the grounds that, given that, seeing that",
    "than": "instead of, rather than, in place of",
    "therefore": "that's why, which is why",
    "before": "prior to, ahead of",
}
PHRASES: Final = {
    first: [
        (tuple(phrase.replace("'s", " 's").split()), word)
        for word, phrases in _PHRASES.items()
        for phrase in phrases.split(", ")
        if phrase.replace("'s", " 's").split()[0] == first
    ]
    for first in {phrase.replace("'s", " 's").split()[0] for some in _PHRASES.values() for phrase in some.split(", ")}
}
"""English phrases that do the work of one small word, by their first word."""

TIME_WORDS: Final = {
    "en": words("on in at during of every for"),
    "de": words("am im um an in"),
    "fr": words("à le en dans"),
    "es": words("en a al por"),
    "it": words("a al alle in di il"),
    "pt": words("em no na às a à aos"),
    "nl": words("op om in"),
    "ru": words("в во по на"),
    "el": words("στις το κάθε"),
    "ar": words("في"),
    "hi": words("को में"),
}
"""Prepositions that begin a time and may be missing there."""

CLAUSES: Final = {
    language: {word: sort for sort, some in sorts.items() for word in some.split()}
    for language, sorts in {
        "en": {
            "cause": "because since",
            "effect": "so therefore hence thus",
            "condition": "if when whenever unless while until till once before after whether provided",
            "relative": "who whom whose which",
        },
        "de": {
            "cause": "weil denn",
            "effect": "daher deshalb",
            "condition": "wenn falls ob bevor nachdem während bis obwohl",
        },
        "fr": {
            "cause": "car puisque",
            "effect": "donc",
            "condition": "si quand lorsque lorsqu",
            "relative": "qui dont",
        },
        "es": {"cause": "porque pues", "condition": "si cuando mientras", "relative": "quien"},
        "it": {"cause": "perché", "condition": "se quando mentre", "relative": "chi"},
        "pt": {"cause": "porque", "condition": "se quando enquanto", "relative": "quem"},
        "nl": {"cause": "omdat want", "effect": "dus", "condition": "als wanneer terwijl"},
        "ru": {"cause": "потому", "condition": "если когда пока", "relative": "который которая которые"},
        "el": {"cause": "γιατί επειδή", "condition": "αν όταν"},
        "ar": {"cause": "لان", "condition": "اذا عندما"},
        "hi": {"cause": "क्योंकि", "condition": "अगर जब"},
    }.items()
}
"""Words that make one part of a text depend on the other, by how."""

DUTIES: Final = {
    "en": (words("have has had need needs required obliged obligatory mandatory necessary compulsory"), False),
    "de": (words("muss müssen musst müsst musste brauchen braucht brauche"), True),
    "nl": (words("hoeft hoeven"), True),
    "fr": (words("obligé obligée obligés obligatoire nécessaire besoin"), True),
    "es": (words("obligado obligada necesario necesaria obligatorio necesita necesitan"), True),
    "it": (words("obbligato obbligatorio necessario bisogno"), True),
    "pt": (words("obrigado obrigatório necessário precisa precisam"), True),
    "ru": (words("обязан обязана обязаны обязательно нужно"), True),
}
"""Words of a duty that a denial lifts (one need not), and whether it does so wherever it stands."""

CHANGERS: Final = words("stop forget remember go regret mean try quit stopped forgot tried went used")
"""Verbs after which "to do" and "doing" are two things."""

OWNING: Final = words(
    "has have had own owns owned owner belong belongs is are was were be hat ist tiene es a est heeft"
)
"""Words of a sentence that says who owns what, where the owner may be the subject."""

BEFORE_AMOUNTS: Final = {
    "en": words("by to from since until till before after within over under between above below"),
    "de": words("um auf von bis seit vor nach ab gegen"),
    "fr": words("à au de jusqu depuis avant après vers dès"),
    "es": words("a hasta desde en antes hacia"),
    "it": words("a da fino entro dopo prima verso"),
    "pt": words("para até desde após"),
    "nl": words("met tot naar van sinds voor na vanaf"),
    "ru": words("до на с от после к"),
    "el": words("κατά μέχρι από ως πριν μετά"),
    "ar": words("الى حتى من منذ بعد قبل ب"),
    "zh": words("到 至 自 从 前 后 超 近"),
}
"""Words before a quantity that say how it is meant."""

AFTER_AMOUNTS: Final = {
    "ja": words("へ まで から"),
    "ko": words("으로 까지 부터 만큼 씩"),
    "hi": words("तक से पर"),
    "zh": words("前 后 内 以"),
}
"""The same after it."""

TIMES: Final = frozenset({"time", "date", "weekday", "period", "ordinal"})
NAMES: Final = frozenset({"name", "first", "mixed"})
CORE: Final = frozenset({"S", "O", "V", ""})
ARTICLES: Final = frozenset(
    {"a", "an", "the", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their", "no"}
)
BE: Final = frozenset(
    {"is", "are", "was", "were", "be", "been", "being", "am", "'s", "'re", "'m", "get", "gets", "got"}
)
HAVE: Final = frozenset({"has", "have", "had", "'ve"})
LONGEST_GAP: Final = 2
