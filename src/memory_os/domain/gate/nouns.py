"""Nouns that say what a number or a name beside them is."""

# ruff: noqa: E501 - letters of other scripts are meant; lists of words

from __future__ import annotations

from typing import Final

from memory_os.domain.gate.word_lists import words

ID_NOUNS: Final = words(
    """
    sprint room version release port model line gate hall step chapter page route bus flight build ticket
    issue batch level unit apartment suite track platform account code no nr number form section article
    invoice order lot box shelf bay dock lane building block phase stage day iteration milestone q class
    grade ward bed locker zone sector district channel slot rack pier terminal exit figure table appendix
    lesson episode season volume raum zimmer halle version linie seite kapitel gleis salle chambre ligne
    page sala línea página комната зал версия строка линия номер
    """
)
"""Before a number they make it a name: Lane 6, port 70."""

ROLE_NOUNS: Final = words(
    """
    responsible owner lead leader head contact manager boss ceo cto cfo director chair chairman treasurer
    secretary captain coach mentor capital dentist doctor teacher tutor supplier vendor landlord name
    password favourite favorite sponsor admin administrator maintainer reviewer president mayor deputy
    supervisor editor host provider address location venue called accountant lawyer owner
    """
)
"""What one person or thing at a time is: a new holder takes the place of the old one."""

ROLE_PARTS: Final = (
    "负责人", "主管", "经理", "老板", "队长", "组长", "联系人", "密码", "地址", "班主任", "主任", "責任者", "担当者", "担当は", "部長", "社長", "課長",
    "店長", "リーダー", "連絡先", "住所", "팀장", "담당자", "책임자", "사장", "부장", "대표", "비밀번호", "주소", "연락처", "मैनेजर", "प्रबंधक", "ज़िम्मेदार",
    "директор", "руководитель", "начальник", "ответственный", "капитан", "διευθυντής", "υπεύθυνος", "υπεύθυνη", "المدير", "مدير", "المسؤول",
    "directeur", "directrice", "responsable", "patron", "leiter", "chefin", "trainer", "ansprechpartner", "vorsitzende", "kassenwart",
    "director", "directora", "jefe", "jefa", "encargado", "encargada", "entrenador", "capitán", "presidente", "direttore",
)  # fmt: skip
"""The same in other languages, as parts of a text in lower case."""

PER: Final = words("per a an за pro je par por al प्रति / each every ανά")
"""Between a price and what it is reckoned by."""
