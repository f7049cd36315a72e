"""Pronouns by the person that they speak of, and whether that person acts."""

# ruff: noqa: RUF001 - letters of other scripts are meant

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from memory_os.domain.gate.comparing import Comparison
    from memory_os.domain.gate.reading import Reading

_ROWS: Final = {
    "en": {
        "I": ("i", "me my mine myself"),
        "we": ("we", "us our ours ourselves"),
        "you": ("", "you your yours yourself"),
        "he": ("he", "him his himself"),
        "she": ("she", "her hers herself"),
        "they": ("they", "them their theirs themselves"),
    },
    "de": {
        "I": ("ich", "mich mir mein meine meinen meinem meiner meines"),
        "we": ("wir", "uns unser unsere unserem unserer unseren unseres"),
        "you": ("du", "dich dir dein deine deinen deinem deiner euer eure euren eurem"),
        "he": ("er", "ihm ihn sein seine seinen seinem seiner seines"),
        "she": ("", "ihr ihre ihren ihrem ihrer ihres ihnen"),
    },
    "fr": {
        "I": ("je j", "me m mon ma mes moi"),
        "we": ("", "nous notre nos"),
        "you": ("tu", "te t toi ton ta tes vous votre vos"),
        "he": ("il ils", ""),
        "she": ("elle elles", ""),
        "they": ("", "leur leurs"),
        "one": ("", "son sa ses lui"),
    },
    "es": {
        "I": ("yo", "me mi mis mío mía"),
        "we": ("nosotros nosotras", "nos nuestro nuestra nuestros nuestras"),
        "you": ("tú", "te tu tus ti tuyo tuya vuestro vuestra vuestros"),
        "he": ("él ellos", ""),
        "she": ("ella ellas", ""),
        "one": ("", "su sus"),
    },
    "it": {
        "I": ("io", "mi mio mia miei mie"),
        "we": ("noi", "ci nostro nostra nostri nostre"),
        "you": ("tu", "ti tuo tua tuoi tue voi vostro vostra vostri"),
        "he": ("lui", ""),
        "she": ("lei", ""),
        "one": ("", "suo sua suoi sue"),
        "they": ("", "loro"),
    },
    "pt": {
        "I": ("eu", "me meu minha meus minhas"),
        "we": ("nós", "nos nosso nossa nossos nossas"),
        "you": ("tu você", "te teu tua teus tuas"),
        "he": ("ele eles", ""),
        "she": ("ela elas", ""),
        "one": ("", "seu sua seus suas"),
    },
    "nl": {
        "I": ("ik", "mij me mijn"),
        "we": ("wij we", "ons onze"),
        "you": ("jij je jullie", "jou jouw uw"),
        "he": ("hij", "hem zijn"),
        "she": ("", "haar"),
        "they": ("", "hun hen"),
    },
    "ru": {
        "I": ("я", "меня мне мной мой моя моё мое мои моего моей моих мою"),
        "we": ("мы", "нас нам нами наш наша наше наши нашего нашей наших нашу"),
        "you": ("ты вы", "тебя тебе твой твоя твоё твои твоего твоей твою вас вам ваш ваша ваше ваши вашу"),
        "he": ("он", "его ему"),
        "she": ("она", "её ее ей"),
        "they": ("они", "их им"),
    },
    "el": {
        "I": ("εγώ", "μου με"),
        "we": ("εμείς", "μας"),
        "you": ("εσύ εσείς", "σου σας"),
    },
    "ar": {
        "I": ("انا", "لي"),
        "we": ("نحن", "لنا"),
        "you": ("انت انتم", "لك"),
        "he": ("هو", "له"),
        "she": ("هي", "لها"),
        "they": ("هم", "لهم"),
    },
    "hi": {
        "I": ("मैं मैंने", "मुझे मेरा मेरी मेरे"),
        "we": ("हम हमने", "हमें हमारा हमारी हमारे"),
        "you": ("तुम आप तू", "तुम्हें तुम्हारा तुम्हारी तुम्हारे आपका आपकी आपके तेरा तेरी"),
        "he": ("", "उसका उसकी उसके उसे"),
        "they": ("", "उनका उनकी उनके उन्हें"),
    },
    "zh": {
        "I": ("我", ""),
        "we": ("我们 咱们", ""),
        "you": ("你 您 你们", ""),
        "he": ("他", ""),
        "she": ("她", ""),
        "they": ("他们 她们", ""),
    },
    "ja": {
        "I": ("私 僕 俺", ""),
        "we": ("私たち 我々", ""),
        "you": ("あなた 君", ""),
        "he": ("彼", ""),
        "she": ("彼女", ""),
        "they": ("彼ら", ""),
    },
    "ko": {
        "I": ("나 나는 내가", "내 나의 나를 나에게 제"),
        "we": ("우리 우리는 저희", "우리의"),
        "you": ("너 너는 당신", "네 너의 당신의"),
        "he": ("그는 그가", "그의 그를"),
        "she": ("그녀는 그녀가 그녀", "그녀의 그녀를"),
    },
}

PERSONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    language: {
        word: (who, role)
        for who, roles in rows.items()
        for role, words in zip(("acts", ""), roles, strict=True)
        for word in words.split()
    }
    for language, rows in _ROWS.items()
}
"""By language and word: who is spoken of, and `acts` for a form that is the subject. Forms that may be either are
given by the commoner of the two."""


def persons(found: Comparison) -> list[str]:
    """His key and her key, I asked him and he asked me."""
    table = PERSONS.get(found.left.language)
    if not table:
        return []
    sides = [_named_persons(reading, table) for reading in (found.left, found.right)]
    if found.left.passive != found.right.passive:
        sides = [Counter({(who, ""): count for (who, _), count in side.items()}) for side in sides]
    more, less = sides[0] - sides[1], sides[1] - sides[0]
    if not (more and less):
        return []
    return [f"person: {next(iter(more))[0]} / {next(iter(less))[0]}"]


def _named_persons(reading: Reading, table: dict[str, tuple[str, str]]) -> Counter[tuple[str, str]]:
    if reading.language not in {"zh", "ja"}:
        return Counter(table[low] for low in reading.lows if low in table)
    text = "".join(reading.lows)
    found: Counter[tuple[str, str]] = Counter()
    for word in sorted(table, key=len, reverse=True):
        if word in text:
            found[table[word]] += text.count(word)
            text = text.replace(word, " ")
    return found
