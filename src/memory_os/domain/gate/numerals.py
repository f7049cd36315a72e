"""Number words, month and weekday names, and units, by language: the data that quantities are read with."""

# ruff: noqa: RUF001, E501, PIE800 - letters of other scripts are meant; tables of words

from __future__ import annotations

from fractions import Fraction
from typing import Final

from memory_os.domain.gate.lemmas import fold_word
from memory_os.domain.gate.word_lists import words

MINUTE: Final = 60
HOUR: Final = 3_600
DAY: Final = 86_400
WEEK: Final = 7 * DAY


def _numbered(text: str, start: int = 0) -> dict[str, int]:
    return {word: value for value, words in enumerate(text.split(), start) for word in words.split("/")}


_TENS: Final = {
    "en": "ten twenty thirty forty/fourty fifty sixty seventy eighty ninety",
    "de": "zehn zwanzig dreißig/dreissig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "dix vingt trente quarante cinquante soixante soixante-dix quatre-vingts quatre-vingt-dix",
    "es": "diez veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "dieci venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "pt": "dez vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
    "nl": "tien twintig dertig veertig vijftig zestig zeventig tachtig negentig",
    "ru": "десять двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто",
    "el": "δέκα είκοσι τριάντα σαράντα πενήντα εξήντα εβδομήντα ογδόντα ενενήντα",
    "hi": "दस बीस तीस चालीस पचास साठ सत्तर अस्सी नब्बे",
    "ar": "عشره/عشر عشرون/عشرين ثلاثون/ثلاثين اربعون/اربعين خمسون/خمسين ستون/ستين سبعون/سبعين ثمانون/ثمانين تسعون/تسعين",
    "ko": "열 스물/스무 서른 마흔 쉰 예순 일흔 여든 아흔",
}
_SMALL: Final = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn"
    " achtzehn neunzehn",
    "fr": "zéro un_ deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit"
    " dix-neuf",
    "es": "cero un_ dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete"
    " dieciocho diecinueve",
    "it": "zero un_ due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici"
    " diciassette diciotto diciannove",
    "pt": "zero um_ dois/duas três quatro cinco seis sete oito nove dez onze doze treze catorze quinze dezasseis/dezesseis"
    " dezassete/dezessete dezoito dezanove/dezenove",
    "nl": "nul één twee drie vier vijf zes zeven acht negen tien elf twaalf dertien veertien vijftien zestien zeventien"
    " achttien negentien",
    "ru": "ноль один/одна/одного два/две/двух/двое три/трех/трое четыре/четырех пять/пяти шесть/шести семь/семи восемь/восьми"
    " девять/девяти десять/десяти одиннадцать двенадцать тринадцать четырнадцать пятнадцать шестнадцать семнадцать"
    " восемнадцать девятнадцать",
    "el": "μηδέν _ δύο τρεις/τρία τέσσερις/τέσσερα πέντε έξι επτά/εφτά οκτώ/οχτώ εννέα/εννιά δέκα έντεκα δώδεκα δεκατρία"
    " δεκατέσσερα δεκαπέντε δεκαέξι δεκαεπτά δεκαοκτώ δεκαεννέα",
    "hi": "शून्य _ दो तीन चार पांच/पाँच छह/छः सात आठ नौ दस ग्यारह बारह तेरह चौदह पंद्रह/पन्द्रह सोलह सत्रह अठारह उन्नीस",
    "ar": "صفر واحد/واحده اثنان/اثنين/اثنتين ثلاثه/ثلاث اربعه/اربع خمسه/خمس سته/ست سبعه/سبع ثمانيه/ثماني تسعه/تسع عشره/عشر",
    "ko": "영 하나/한 둘/두 셋/세 넷/네 다섯 여섯 일곱 여덟 아홉 열",
}
_ORDINALS: Final = {
    "en": "zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth"
    " fifteenth sixteenth seventeenth eighteenth nineteenth twentieth",
    "de": "nullte _ zweite/zweiten/zweiter/zweites dritte/dritten/dritter/drittes vierte/vierten/vierter fünfte/fünften/fünfter"
    " sechste/sechsten siebte/siebten achte/achten neunte/neunten zehnte/zehnten elfte/elften zwölfte/zwölften",
    "fr": "_ _ deuxième/second/seconde troisième quatrième cinquième sixième septième huitième neuvième dixième",
    "es": "_ _ segundo/segunda tercero/tercera/tercer cuarto/cuarta quinto/quinta sexto/sexta séptimo/séptima octavo/octava"
    " noveno/novena décimo/décima",
    "it": "_ _ secondo/seconda terzo/terza quarto/quarta quinto/quinta sesto/sesta settimo/settima ottavo/ottava nono decimo",
    "nl": "_ _ tweede derde vierde vijfde zesde zevende achtste negende tiende",
    "ru": "_ _ второй/вторая/второе/вторую/втором третий/третья/третье/третьем/третью четвертый/четвертая/четвертом"
    " пятый/пятая/пятом шестой/шестая/шестом седьмой/седьмом восьмой девятый десятый",
    "hi": "_ _ दूसरा/दूसरी/दूसरे तीसरा/तीसरी/तीसरे चौथा/चौथी पांचवां/पाँचवाँ/पांचवीं",
}
NUMBERS: Final[dict[str, dict[str, int]]] = {
    language: {
        fold_word(word, language): value
        for word, value in {
            **_numbered(_SMALL[language]),
            **{word: 10 * value for word, value in _numbered(_TENS.get(language, ""), 1).items()},
        }.items()
        if "_" not in word
    }
    for language in _SMALL
}
"""Cardinal words below a hundred. Articles that also mean one are left out: a house is not one house."""
NUMBERS["en"] |= {"couple": 2, "dozen": 12, "twice": 2, "thrice": 3, "pair": 2}
NUMBERS["de"] |= {
    "zweimal": 2,
    "dreimal": 3,
    "viermal": 4,
    "beide": 2,
    "beiden": 2,
    "dutzend": 12,
    "hundert": 100,
    "tausend": 1000,
}
NUMBERS["de"] |= {
    f"{one}und{ten}": 10 * tens + value
    for one, value in _numbered("ein zwei drei vier fünf sechs sieben acht neun", 1).items()
    for ten, tens in _numbered(_TENS["de"], 1).items()
    if tens > 1
}
NUMBERS["nl"] |= {"honderd": 100, "duizend": 1000, "tweemaal": 2}
NUMBERS["nl"] |= {
    f"{one}{joint}{ten}": 10 * tens + value
    for one, value in _numbered("een twee drie vier vijf zes zeven acht negen", 1).items()
    for joint in ("en", "ën")
    for ten, tens in _numbered(_TENS["nl"], 1).items()
    if tens > 1
}
NUMBERS["es"] |= {
    **_numbered(
        "veintiuno veintidós veintitrés veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve", 21
    ),
    **{"cien": 100, "ciento": 100, "doscientos": 200, "trescientos": 300, "quinientos": 500, "mil": 1000},
}
NUMBERS["ko"] |= {
    f"{ten}{one}": 10 * tens + value
    for ten, tens in _numbered("열 스물 서른 마흔 쉰 예순 일흔 여든 아흔", 1).items()
    for one, value in _numbered("하나/한 둘/두 셋/세 넷/네 다섯 여섯 일곱 여덟 아홉", 1).items()
}
NUMBERS["fr"] |= {"cent": 100, "cents": 100, "mille": 1000, "vingts": 20}
NUMBERS["ru"] |= {"сто": 100, "двести": 200, "триста": 300, "пятьсот": 500, "тысяча": 1000, "дважды": 2, "трижды": 3}
NUMBERS["hi"] |= {"सौ": 100, "हजार": 1000, "पच्चीस": 25, "दोनों": 2, "पैंतीस": 35}
NUMBERS["el"] |= {"εκατό": 100, "διακόσια": 200, "τριακόσια": 300, "πεντακόσια": 500, "χίλια": 1000}
NUMBERS["ar"] |= {"مئه": 100, "مائه": 100, "الف": 1000, "مرتين": 2}

ORDINALS: Final[dict[str, dict[str, int]]] = {
    language: {fold_word(word, language): value for word, value in _numbered(text).items() if "_" not in word}
    for language, text in _ORDINALS.items()
}
ORDINALS["en"] |= {"thirtieth": 30, "hundredth": 100, "primary": 1}
del ORDINALS["en"]["primary"]

MULTIPLES: Final = {
    "hundred": 100, "thousand": 1_000, "million": 10**6, "billion": 10**9, "k": 1_000, "mio": 10**6, "mille": 1_000,
    "millionen": 10**6, "millions": 10**6, "millones": 10**6, "mil": 1_000, "tausend": 1_000, "hundert": 100, "cent": 100, "cents": 100,
    "тысяч": 1_000, "тысячи": 1_000, "тысяча": 1_000, "миллион": 10**6, "миллиона": 10**6, "миллионов": 10**6,
    "लाख": 10**5, "हज़ार": 1_000, "हजार": 1_000, "सौ": 100, "करोड़": 10**7, "χιλιάδες": 1_000, "εκατομμύρια": 10**6, "الاف": 1_000,
    "만": 10_000, "천": 1_000, "백": 100, "억": 10**8,
}  # fmt: skip

HAN_DIGITS: Final = {**_numbered("〇/零 一 二/两 三 四 五 六 七 八 九"), "兩": 2}
HAN_TENS: Final = {"十": 10, "百": 100, "千": 1_000, "万": 10_000, "萬": 10_000, "亿": 10**8, "億": 10**8}
SINO_KOREAN: Final = {**_numbered("공 일 이 삼 사 오 육 칠 팔 구"), "십": 10}

SHARES: Final = {
    "half": Fraction(1, 2), "third": Fraction(1, 3), "thirds": Fraction(1, 3), "quarter": Fraction(1, 4),
    "quarters": Fraction(1, 4), "fifth": Fraction(1, 5), "fifths": Fraction(1, 5), "tenth": Fraction(1, 10),
    "hälfte": Fraction(1, 2), "viertel": Fraction(1, 4), "drittel": Fraction(1, 3), "moitié": Fraction(1, 2), "tiers": Fraction(1, 3),
    "mitad": Fraction(1, 2), "metà": Fraction(1, 2), "metade": Fraction(1, 2), "половина": Fraction(1, 2), "половину": Fraction(1, 2),
    "четверть": Fraction(1, 4), "треть": Fraction(1, 3), "helft": Fraction(1, 2), "आधा": Fraction(1, 2), "आधी": Fraction(1, 2), "आधे": Fraction(1, 2),
    "نصف": Fraction(1, 2), "ربع": Fraction(1, 4), "ثلث": Fraction(1, 3), "절반": Fraction(1, 2), "μισό": Fraction(1, 2), "μισά": Fraction(1, 2), "μισή": Fraction(1, 2),
}  # fmt: skip

UNITS: Final[dict[str, tuple[str, Fraction]]] = {
    word: (dimension, Fraction(factor))
    for line in """
    s 1 second seconds sec secs s sekunde sekunden seconde secondes segundo segundos секунд секунды सेकंड 秒 초
    s 60 minute minutes min mins minuten minuto minutos minuti минут минуты минута मिनट 分钟 分鐘 分間 분 λεπτά λεπτό دقيقه دقائق minuut
    s 3600 hour hours hr hrs h stunde stunden heure heures hora horas ore ora час часа часов घंटे घंटा घण्टे 小时 小時 時間 시간 ώρες ώρα ساعه ساعات
    s 86400 day days tag tage tagen jour jours día días giorno giorni dia dias день дня дней दिन 天 日間 일 ημέρες μέρες يوم ايام dag dagen
    s 604800 week weeks wk woche wochen semaine semaines semana semanas settimana settimane неделя недели недель неделю हफ्ते हफ़्ते सप्ताह 周 星期 週間 주 εβδομάδα εβδομάδες اسبوع اسابيع weken
    s 1209600 fortnight fortnights
    month 1 month months monat monate monaten mois mes meses mese mesi mês месяц месяца месяцев महीने महीना माह 个月 ヶ月 か月 カ月 개월 달 μήνα μήνες شهر اشهر شهور maand maanden
    month 3 quarter quarters quartal quartale trimestre trimestres квартал
    month 12 year years yr yrs jahr jahre jahren an ans année années año años anno anni ano anos год года лет साल वर्ष 年 년 χρόνια χρόνος έτη سنه سنوات عام اعوام jaar
    month 120 decade decades jahrzehnt
    m 1 m metre metres meter meters mètre mètres metro metros метр метра метров मीटर 米 メートル 미터 متر
    m 1000 km kilometre kilometres kilometer kilometers kilomètres kilómetros chilometri километр километров километра किलोमीटर किमी 公里 千米 キロメートル 킬로미터 χιλιόμετρα كيلومتر
    m 1/100 cm centimetre centimetres centimeter centimeters zentimeter сантиметров см सेमी 厘米 センチ 센티미터
    m 1/1000 mm millimetre millimetres millimeter millimeters миллиметров мм 毫米 ミリ
    mile 1 mile miles mi meilen
    foot 1 foot feet ft
    inch 1 inch inches
    yard 1 yard yards yd
    g 1 g gram grams gramme grammes gramm gramos г грамм 克 グラム 그램 ग्राम
    g 1000 kg kilo kilos kilogram kilograms kilogramm kilogramme кг килограмм килограмма килограммов किलो 公斤 千克 キロ 킬로 킬로그램 κιλά κιλό كيلو
    g 1/1000 mg milligram milligrams milligramm мг मिलीग्राम 毫克 ミリグラム
    g 1000000 t ton tons tonne tonnes tonnen тонн 吨 トン 톤 टन
    pound 1 lb lbs
    ounce 1 oz ounce ounces
    stone 1 stones
    l 1 l litre litres liter liters литр литра литров लीटर 升 リットル 리터 λίτρα لتر
    l 1/1000 ml millilitre millilitres milliliter milliliters мл 毫升 ミリリットル
    l 1/100 cl
    gallon 1 gallon gallons gal
    percent 1 % percent pct prozent ％ procent процент процента процентов प्रतिशत फीसदी パーセント 퍼센트 percento
    eur 1 € euro euros eur евро यूरो 欧元 歐元 ユーロ 유로 ευρώ يورو
    usd 1 $ dollar dollars usd доллар доллара долларов डॉलर 美元 ドル 달러 δολάρια دولار
    gbp 1 £ gbp quid
    cny 1 ¥ 元 块 人民币 yuan rmb
    jpy 1 円 yen jpy 日元
    krw 1 원 won
    inr 1 ₹ रुपये रुपए रुपया rupee rupees inr
    rub 1 ₽ рубль рубля рублей руб
    chf 1 chf franken francs
    C 1 °c ℃ celsius centigrade
    F 1 °f ℉ fahrenheit
    K 1 kelvin
    degree 1 ° degree degrees grad
    byte 1000 kb
    byte 1000000 mb
    byte 1000000000 gb
    byte 1000000000000 tb
    bit 1000000 mbit mbps
    bit 1000000000 gbit gbps
    v 1 volt volts
    w 1 w watt watts
    w 1000 kw
    wh 1000 kwh
    hz 1 hz
    hz 1000 khz
    hz 1000000 mhz
    hz 1000000000 ghz
    bar 1 bar
    psi 1 psi
    calorie 1 kcal calories calorie
    cup 1 cup cups
    tablespoon 1 tablespoon tablespoons tbsp
    teaspoon 1 teaspoon teaspoons tsp
    pint 1 pint pints
    acre 1 acre acres
    ha 1 ha hectare hectares hektar гектар гектаров हेक्टेयर 公顷
    m2 1 m² sqm 平方米 ㎡ qm 平米
    sqft 1 sqft
    m3 1 m³
    knot 1 knots kn
    sek 1 kr krona kronor kroner kronen sek nok dkk
    pln 1 zloty zlotys pln
    li 1 里
    chmile 1 英里
    jin 500 斤 근
    tsubo 1 坪 평
    dozen 1 ダース
    db 1 db decibel decibels
    ampere 1 amp amps ampere
    pixel 1 px pixel pixels
    horsepower 1 hp horsepower ps
    mile 1 миль мили मील μίλια миля マイル 마일 millas milles
    point 1 pp
    workday 1 workdays workday werktage werktagen arbeitstage arbeitstagen
    fr 1 francs franc
    km/h 1 km/h kmh kph
    mph 1 mph
    """.strip().splitlines()
    for dimension, factor, *words in [line.split()]
    for word in words
}
"""What follows a number: the dimension and how many of its base (seconds, months, metres, grams, litres) it stands for."""

PERIODS: Final = {
    "hourly": ("s", HOUR), "daily": ("s", DAY), "weekly": ("s", WEEK), "monthly": ("month", 1), "quarterly": ("month", 3),
    "yearly": ("month", 12), "annually": ("month", 12), "annual": ("month", 12), "fortnightly": ("s", 2 * WEEK),
    "biweekly": ("s", 2 * WEEK), "nightly": ("night", 1), "bimonthly": ("month", 2), "biannually": ("month", 6), "half-yearly": ("month", 6),
    "täglich": ("s", DAY), "wöchentlich": ("s", WEEK), "monatlich": ("month", 1), "jährlich": ("month", 12), "stündlich": ("s", HOUR),
    "vierteljährlich": ("month", 3), "quartalsweise": ("month", 3), "zweiwöchentlich": ("s", 2 * WEEK), "vierzehntäglich": ("s", 2 * WEEK), "vierzehntägig": ("s", 2 * WEEK),
    "hebdomadaire": ("s", WEEK), "quotidien": ("s", DAY), "quotidiennement": ("s", DAY), "mensuel": ("month", 1), "annuel": ("month", 12),
    "semanalmente": ("s", WEEK), "semanal": ("s", WEEK), "diariamente": ("s", DAY), "diario": ("s", DAY), "mensualmente": ("month", 1), "mensual": ("month", 1),
    "settimanale": ("s", WEEK), "mensile": ("month", 1), "ежедневно": ("s", DAY), "еженедельно": ("s", WEEK), "ежемесячно": ("month", 1), "ежегодно": ("month", 12),
    "ежеквартально": ("month", 3), "wekelijks": ("s", WEEK), "dagelijks": ("s", DAY), "maandelijks": ("month", 1),
    "καθημερινά": ("s", DAY), "रोज": ("s", DAY), "रोजाना": ("s", DAY), "प्रतिदिन": ("s", DAY), "साप्ताहिक": ("s", WEEK), "मासिक": ("month", 1),
    "يوميا": ("s", DAY), "اسبوعيا": ("s", WEEK), "شهريا": ("month", 1), "سنويا": ("month", 12),
    "每天": ("s", DAY), "每日": ("s", DAY), "天天": ("s", DAY), "每周": ("s", WEEK), "每星期": ("s", WEEK), "每月": ("month", 1), "每个月": ("month", 1), "每年": ("month", 12), "每季度": ("month", 3), "每两周": ("s", 2 * WEEK), "每隔一周": ("s", 2 * WEEK), "隔周": ("s", 2 * WEEK),
    "毎日": ("s", DAY), "毎週": ("s", WEEK), "毎月": ("month", 1), "毎年": ("month", 12), "隔週": ("s", 2 * WEEK), "二週間ごと": ("s", 2 * WEEK), "2週間ごと": ("s", 2 * WEEK),
    "매일": ("s", DAY), "날마다": ("s", DAY), "매주": ("s", WEEK), "매달": ("month", 1), "매월": ("month", 1), "매년": ("month", 12), "격주": ("s", 2 * WEEK), "격주로": ("s", 2 * WEEK), "해마다": ("month", 12),
}  # fmt: skip

EVERY: Final = words(
    """
    per every each a an pro jede jeden jedes jedem am im par chaque al a ogni cada каждый каждую каждое
    каждые в по elke per हर प्रति κάθε την كل
    """
)

MONTHS: Final[dict[str, dict[str, int]]] = {
    "en": _numbered(
        "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug september/sept/sep october/oct november/nov"
        " december/dec",
        1,
    ),
    "de": _numbered("januar/jänner februar märz april mai juni juli august september oktober november dezember", 1),
    "fr": _numbered("janvier février mars avril mai juin juillet août septembre octobre novembre décembre", 1),
    "es": _numbered(
        "enero febrero marzo abril mayo junio julio agosto septiembre/setiembre octubre noviembre diciembre", 1
    ),
    "it": _numbered("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre", 1),
    "pt": _numbered("janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro", 1),
    "nl": _numbered("januari februari maart april mei juni juli augustus september oktober november december", 1),
    "ru": _numbered(
        "январь/января/январе февраль/февраля/феврале март/марта/марте апрель/апреля/апреле май/мая/мае июнь/июня/июне июль/июля/июле"
        " август/августа/августе сентябрь/сентября/сентябре октябрь/октября/октябре ноябрь/ноября/ноябре декабрь/декабря/декабре",
        1,
    ),
    "el": _numbered(
        "ιανουάριο/ιανουαρίου/ιανουάριος φεβρουάριο/φεβρουαρίου μάρτιο/μαρτίου/μάρτιος απρίλιο/απριλίου/απρίλιος μάιο/μαΐου/μάιος"
        " ιούνιο/ιουνίου/ιούνιος ιούλιο/ιουλίου/ιούλιος αύγουστο/αυγούστου/αύγουστος σεπτέμβριο/σεπτεμβρίου οκτώβριο/οκτωβρίου"
        " νοέμβριο/νοεμβρίου δεκέμβριο/δεκεμβρίου",
        1,
    ),
    "hi": _numbered("जनवरी फरवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर/सितम्बर अक्टूबर/अक्तूबर नवंबर/नवम्बर दिसंबर/दिसम्बर", 1),
    "ar": _numbered("يناير فبراير مارس ابريل مايو يونيو يوليو اغسطس سبتمبر اكتوبر نوفمبر ديسمبر", 1),
}

WEEKDAYS: Final[dict[str, dict[str, int]]] = {
    "en": _numbered(
        "monday/mondays/mon tuesday/tuesdays/tue/tues wednesday/wednesdays/wed thursday/thursdays/thu/thurs friday/fridays/fri"
        " saturday/saturdays/sat sunday/sundays/sun",
        1,
    ),
    "de": _numbered(
        "montag/montags dienstag/dienstags mittwoch/mittwochs donnerstag/donnerstags freitag/freitags"
        " samstag/samstags/sonnabend/sonnabends sonntag/sonntags",
        1,
    ),
    "fr": _numbered("lundi/lundis mardi/mardis mercredi/mercredis jeudi/jeudis vendredi/vendredis samedi/samedis dimanche/dimanches", 1),
    "es": _numbered("lunes martes miércoles jueves viernes sábado/sábados domingo/domingos", 1),
    "it": _numbered("lunedì martedì mercoledì giovedì venerdì sabato/sabati domenica/domeniche", 1),
    "pt": _numbered("segunda-feira/segundas terça-feira/terças quarta-feira/quartas quinta-feira sexta-feira/sextas sábado/sábados domingo", 1),
    "nl": _numbered("maandag/maandags/maandagen dinsdag/dinsdagen woensdag/woensdagen donderdag vrijdag/vrijdagen zaterdag zondag", 1),
    "ru": _numbered(
        "понедельник/понедельникам/понедельника вторник/вторникам/вторника среда/среду/средам/среды четверг/четвергам/четверга"
        " пятница/пятницу/пятницам/пятницы суббота/субботу/субботам/субботы воскресенье/воскресеньям/воскресенья",
        1,
    ),
    "el": _numbered("δευτέρα τρίτη τετάρτη πέμπτη παρασκευή σάββατο/σάββατα κυριακή", 1),
    "hi": _numbered("सोमवार मंगलवार बुधवार गुरुवार/बृहस्पतिवार शुक्रवार शनिवार रविवार/इतवार", 1),
    "ar": _numbered("الاثنين الثلاثاء الاربعاء الخميس الجمعه السبت الاحد", 1),
    "ko": _numbered("월요일 화요일 수요일 목요일 금요일 토요일 일요일", 1),
}  # fmt: skip

CLOCK: Final = words("uhr heures heure h horas ore uur часов часа час बजे 点 點 時 시 o'clock")
"""After a number they make it an hour of the day, where the language says so."""

BOUNDS: Final = {
    tuple(phrase.strip().split()): sign
    for sign, phrases in {
        ">": """over, above, more than, exceeding, in excess of, greater than, upwards of, higher than, beyond, mehr als, über, plus de, más
            de, più di, mais de, meer dan, более, больше, свыше, πάνω από""",
        ">=": """at least, no less than, not less than, no fewer than, a minimum of, minimum, from, mindestens, wenigstens, au moins, al
            menos, por lo menos, almeno, pelo menos, minstens, не менее, τουλάχιστον""",
        "<": """under, below, less than, fewer than, lower than, smaller than, weniger als, unter, moins de, menos de, meno di, minder
            dan, менее, меньше, κάτω από""",
        "<=": """up to, at most, no more than, not more than, max, maximum, a maximum of, as many as, höchstens, maximal, bis zu, au plus,
            jusqu à, como máximo, hasta, al massimo, fino a, no máximo, até, hoogstens, не более, το πολύ""",
        "~": """about, approximately, roughly, around, circa, some, nearly, almost, close to, in the region of, just about, ungefähr, etwa, rund,
            ca, knapp, environ, à peu près, presque, unos, unas, aproximadamente, cerca de, casi, circa, quasi, ongeveer, примерно, около, почти,
            περίπου""",
    }.items()
    for phrase in phrases.split(",")
}
"""What may stand before a number and makes it a bound or a guess."""
