r"""The exact key: what two texts must share to be the same words, written differently.

The rule, in this order:

1. Characters that a reader does not see go: zero-width space, soft hyphen, directional marks, byte order mark,
   controls. A joiner or non-joiner goes only where it means nothing; in Indic and Arabic script and emoji it stays.
2. Full-width and half-width forms, ligatures and signs made of letters become the letters; typographic quotes, dashes
   and stops the plain ones. Superscripts, subscripts and fractions stay what they are (ten squared is not "102"); a
   circled number becomes digits where it stands alone.
3. Case goes, with the final sigma and the dot of a Turkish capital I. The sharp s stays: it parts Masse from Ma\u00dfe.
4. White space collapses; beside Han and kana it goes. Full stops at the end go, a question mark does not.

Which punctuation stands where counts, but for that: commas move meaning.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from unicodedata import normalize

from memory_os.domain.gate.word_lists import words

_UNSEEN: Final = (
    "\u0000-\u0008\u000e-\u001f\u007f-\u0084\u0086-\u009f\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\ufe0e\ufe0f\ufeff\ufff9-\ufffb"
)
_unseen = re.compile(f"[{_UNSEEN}]+")
_joiners = re.compile("[\u200c\u200d]")
_means_joining = re.compile(
    "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\ufb50-\ufdff\ufe70-\ufeff"
    "\u00a9\u00ae\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_circled = re.compile(
    "(?<![0-9A-Za-z\u00c0-\u02af\u0370-\u0fff])[\u2460-\u2473\u24ea\u3251-\u325f\u32b1-\u32bf](?![0-9A-Za-z\u00c0-\u02af\u0370-\u0fff\u2460-\u249b\u00b2\u00b3\u00b9\u00bc-\u00be])"
)
_spaces = re.compile(r"\s+")
_HAN_KANA: Final = "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_loose = re.compile(f"(?<=[{_HAN_KANA}]) (?=\\W|[{_HAN_KANA}])|(?<=[,.;:!?\"')]) (?=[{_HAN_KANA}])")
_stops = re.compile(r"[.\s]+$")

_SAME_LETTERS: Final = words(
    """
    <wide> <narrow> <font> <compat> <square> <noBreak> <isolated> <initial> <medial> <final> <vertical>
    <small>
    """
)
_PLAIN: Final = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u02bb\u00b4\u2039\u203a\uff07`", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f\u300a\u300b\uff02", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d", "-"),
    **dict.fromkeys("\u3002\uff61\u0964\u06d4", "."),
    **dict.fromkeys("\u3001\uff64\u060c", ","),
    "\u2026": "...",
    "\u0640": "",
    "\u066a": "%",
    "\u066b": ".",
    "\u066c": ",",
    "\u061b": ";",
    "\u037e": ";",
    "\u061f": "?",
    "\u30fb": "\u00b7",
    "\u0387": "\u00b7",
    "\u3010": "[",
    "\u3011": "]",
    "\u301c": "~",
}


def _build() -> dict[int, str]:
    """Compatibility forms whose plain letters mean the same; anything with a digit in it stays, but for wide digits."""
    table = {ord(key): value for key, value in _PLAIN.items()}
    for point in (*range(0xA0, 0xFFFF), *range(0x1D400, 0x1D800), *range(0x1FBF0, 0x1FBFA)):
        character = chr(point)
        if point in table or unicodedata.category(character) == "Cs":
            continue
        plain = normalize("NFKC", character)
        if plain == character or normalize("NFC", character) != character:
            continue
        sort = unicodedata.decomposition(character).split(" ")[0]
        wide_digit = sort in {"<wide>", "<font>"} and unicodedata.category(character) == "Nd"
        letters = sort in _SAME_LETTERS and not any(part.isnumeric() for part in plain)
        # Spacing accents and half-width marks fold to a space with an accent on it: they are left.
        if (wide_digit or letters) and not (plain.startswith(" ") and len(plain) > 1):
            table[point] = plain
    return table


_plain: Final = _build()
_half_width = re.compile("[\uff66-\uff9f]+")


def plain_text(text: str) -> str:
    """Steps 1 and 2 with the case left: NFC, seen characters only, plain punctuation, white space as written."""
    if text.isascii() and text.isprintable():
        return text
    text = normalize("NFC", _unseen.sub("", text))
    text = _joiners.sub(_keep_joiner, text)
    text = _half_width.sub(lambda match: normalize("NFKC", match[0]), text)
    text = normalize("NFC", text.translate(_plain))
    return _circled.sub(lambda match: str(int(unicodedata.numeric(match[0]))), text)


def _keep_joiner(match: re.Match[str]) -> str:
    text, place = match.string, match.start()
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    return match[0] if _means_joining.match(before) and _means_joining.match(after) else ""


def normal_form(text: str) -> str:
    """The key of a text: equal for texts that differ in white space, case, composition and typography only.

    Idempotent, for any text; "" only where nothing visible is left. Texts whose digits, superscripts or fractions
    differ never share it.
    """
    seen = _fold_once(text)
    for _ in range(4):  # Folding can join what could not be joined before; one more turn settles all that is known.
        again = _fold_once(seen)
        if again == seen:
            break
        seen = again
    return seen


def _fold_once(text: str) -> str:
    low = plain_text(text).lower().replace("\u03c2", "\u03c3").replace("i\u0307", "i")
    spaced = _spaces.sub(" ", normalize("NFC", low)).strip(" ")
    joined = _loose.sub("", spaced)
    return _stops.sub("", joined) or joined


def loud_form(text: str) -> str | None:
    """For a text in capitals alone: its key without what capitals leave out (accents, the sharp s); None for others.

    Compare with `quiet_form` of the other text.
    """
    plain = plain_text(text)
    return quiet_form(text) if plain != plain.lower() and plain == plain.upper() else None


def quiet_form(text: str) -> str:
    """The key of a text as capitals would leave it: Greek accents and the sharp s are written out."""
    folded = normalize("NFD", normal_form(text)).replace("\u00df", "ss").replace("\u0131", "i")
    return normalize("NFC", re.sub("(?<=[\u0370-\u03ff])\u0301", "", folded))
