"""Words that look like names and are none, and the small words inside names: the data of the heuristic extractor.

All entries are case-folded. A declared name wins over all of these lists.
"""

# ruff: noqa: RUF001 - the Cyrillic and Greek letters are meant

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PRONOUNS: Final = _words(
    """
    i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
    we our ours ourselves they them their theirs themselves who whom whose what which this that these those
    someone somebody something anyone anybody anything everyone everybody everything nobody nothing none ich
    mich mir dich dir er sie wir uns ihr ihm ihn ihnen es je tu il elle nous vous ils elles ella nosotros ellos
    ellas usted ustedes io lei lui noi voi loro eu ele ela eles elas ik jij hij zij wij jullie я ты он она оно
    мы вы они εγώ εσύ εμείς εσείς
    """
)
"""Never part of a name: a phrase ends at one."""

DATES: Final = _words(
    """
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays
    saturdays sundays mon tue tues wed thu thur thurs fri sat sun montag dienstag mittwoch donnerstag freitag
    samstag sonnabend sonntag lundi mardi mercredi jeudi vendredi samedi dimanche lunes martes miércoles jueves
    viernes sábado domingo lunedì martedì mercoledì giovedì venerdì sabato domenica january february march april
    may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec
    januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet août septembre
    octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
    diciembre gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
    """
)
"""Weekdays and months. A phrase ends at one: Black Friday and June Carter have to be declared to be found whole."""

STARTERS: Final = _words(
    """
    and but or nor so yet for if when while where why how because since although though unless until after
    before once as at by from in into of off on onto out over under through to toward towards up upon with
    within without about above across against along among around behind below beneath beside besides between
    beyond despite down during except inside near outside past per regarding than via then there here now today
    tomorrow yesterday tonight later soon again also too even just only still already always never often
    sometimes usually maybe perhaps probably actually basically honestly finally firstly secondly lastly
    meanwhile however therefore thus hence moreover furthermore instead otherwise overall recently currently
    previously originally initially eventually suddenly apparently unfortunately fortunately luckily hopefully
    obviously clearly generally specifically especially additionally similarly consequently nevertheless
    nonetheless regardless according due thanks thank please sorry hello hi hey hiya dear bye goodbye cheers
    congrats congratulations welcome yes no yeah yep nope ok okay sure well wow oh ah ooh aww haha lol omg hmm
    um uh woah whoa woohoo yay aw ouch oops phew gosh anytime hang bet good cool awesome amazing perfect false
    happy glad absolutely definitely totally exactly indeed certainly agreed done not all any both each either
    every few many more most much neither other others another several some such same own whole do does did
    doing don't is are was were be been being am have has had having can could cannot would shall should might
    must let lets got get gets getting go goes going gone went come comes came coming make makes made making
    take takes took taking use uses used using see sees saw seen seeing say says said saying tell tells told
    telling ask asks asked asking call calls called calling meet meets met meeting visit visits visited visiting
    send sends sent sending email remind check reviewed reviewing buy bought buying add added adding remember
    note notes noted consider considering given based following including keep keeps kept keeping give gives
    gave giving find found finding think thinks thought thinking know knows knew known feel feels felt feeling
    want wants wanted need needs needed like likes liked loved loving look looks looked looking try tries tried
    trying work works worked working start starts started starting stop stopped run runs ran running talk talks
    talked talking speak speaks spoke speaking read write wrote writing show shows showed put set help helps
    helped helping move moved moving live lives lived living leave left played playing pay paid paying sell sold
    hear heard listen watch watched wait bring brought begin began seems sounds turns und oder aber wenn weil
    dass im zum zur mit von bei nach aus für über unter vor auf heute morgen gestern jetzt dann hier dort auch
    nicht kein keine ist sind war et ou mais si quand avec pour dans sur sous chez demain maintenant alors aussi
    pas est sont était pero cuando con para por sobre ayer hoy mañana ahora también son era ma quando ieri oggi
    domani ora poi anche sono mas com ontem hoje amanhã agora maar als voor op gisteren vandaag nu ook niet zijn
    в на и а но с к по из от для это как когда если потом сегодня вчера завтра και στο στη στην στον με για από
    σήμερα χθες
    """
)
"""Words that begin sentences: dropped from the front of a capitalised phrase that does."""

SMALL_WORDS: Final = _words(
    """
    a an the and or but of in on at by for to from with as if der die das den dem ein eine les un une uno una
    unos unas il lo gli het een os ο η το τα οι τη την τον non co ex vice self anti pre post pro re mid sub
    """
)
"""Dropped at both edges of a capitalised phrase; inside (Lord Of The Rings) they stay."""

ARTICLES: Final = _words(
    """
    a an the der die das den dem ein eine les un une uno una unos unas il lo gli het een ο η το τα οι
    """
)
"""Those of the small words that a name may be written with and without: The Beatles and Beatles are one band."""

NOT_NAMES: Final = _words(
    """
    ok todo fixme tbd tba fyi asap eta aka ps nb am pm ad bc bce ce faq diy rip vip q&a imho imo btw idk tldr
    nsfw ceo cto cfo coo cio cmo vp svp evp md phd mba bsc msc jd hr pr qa ui ux api url http https html css
    json xml usd eur gbp jpy chf ids nr vs etc ie eg
    """
)
"""Titles and abbreviations that name nobody and no thing of one's own; dropped at both edges."""

HONORIFICS: Final = _words(
    """
    mr mrs ms mx dr prof professor sir madam herr frau mme mlle monsieur madame señor señora sr sra signor
    signora
    """
)
"""Dropped before a name: Dr. Weiss and Weiss are one person."""

NAME_ABBREVIATIONS: Final = _words(
    """
    mr mrs ms mx dr prof professor sir madam herr frau mme mlle monsieur madame señor señora sr sra signor
    signora st mt ft gen col lt sgt capt rev hon
    """
)
"""Abbreviations after whose full stop a name goes on."""

ABBREVIATIONS: Final = _words(
    """
    mr mrs ms mx dr prof professor sir madam herr frau mme mlle monsieur madame señor señora sr sra signor
    signora st mt ft gen col lt sgt capt rev hon jr vs etc inc ltd co corp bros dept est fig no nr vol ed eds
    approx resp e.g i.e cf al op ca bzw usw z.b d.h u.a jan feb mar apr jun jul aug sep sept oct nov dec
    """
)
"""A full stop after one of these does not end the sentence."""

NAME_WORDS: Final = _words(
    """
    will mark bill rose hope grace joy faith dawn chase frank rich grant drew pat art gene ray jack penny iris
    ivy lily olive ruby daisy amber pearl hunter mason cooper carter may april june august
    """
)
"""Common words that are given names too."""

SPEECH_VERBS: Final = _words(
    """
    said says say asked asks replied replies answered wrote writes shouted whispered exclaimed added told texted
    sagte fragte meinte
    """
)
"""A quotation after one of these is speech, not a name."""

QUANTITIES: Final = _words(
    """
    % percent am pm kg g km m cm mm mi ft lb lbs oz ml l gb mb kb tb hz khz mhz ghz w kw kwh v mph kmh h hr min
    sec euro dollar pound million billion thousand hundred dozen more
    """
)
"""After a number they make it an amount: in "gave Ann 5 kg" the 5 belongs to no name. Plurals do the same."""

NOT_PLURALS: Final = _words(
    """
    is was has does its this thus as us yes always perhaps besides needs seems looks opens starts
    """
)
"""Words on -s after which a number still belongs to the name before it: Room 101 is free."""

YEAR_PREPOSITIONS: Final = _words(
    """
    in since by until till from during of before after around to through between and or im seit bis en desde
    hasta depuis
    """
)
"""Before a year they make it a date: "in 2023 Ann moved" names no "2023 Ann"."""

BRIDGES: Final = frozenset(
    f" {bridge} "
    for bridge in (
        "&",
        "of",
        "of the",
        "de",
        "de la",
        "de las",
        "de los",
        "del",
        "della",
        "di",
        "da",
        "dos",
        "du",
        "des",
        "van",
        "van de",
        "van den",
        "van der",
        "von",
        "von der",
        "bin",
        "ibn",
        "ben",
        "al",
    )
)
"""What may stand between two capitalised words of one name.

Not "and": Ardal & Finch is a firm, Ann and Ben are two people.
"""

TITLE_WORDS: Final = _words("and in on at by for to with from und et y e zu zum zur im am и και")
"""What may stand between the words of a title that is a name, beside bridges: a title says where the name ends."""

COMMON_WORDS: Final = PRONOUNS | DATES | STARTERS | SMALL_WORDS | NAME_WORDS
"""A declared name that is one of these, written with a capital, is not found where it is written without."""
