from __future__ import annotations

import pytest

from memory_os.domain.roles import PERMISSION_MEANINGS, PERMISSIONS, SCOPES, check_role, check_scope, may, may_correct
from memory_os.domain.vocabulary import VocabularyError


def test_the_table_is_the_designs() -> None:
    assert {role: set(granted) for role, granted in PERMISSIONS.items()} == {
        "reader": {"read"},
        "writer": {"read", "write"},
        "reviewer": {"read", "write", "review"},
        "operator": {"read", "operate"},
        "admin": {"read", "write", "review", "operate", "admin"},
        "root": {"instance", "operate"},
    }
    assert SCOPES == ("act_as",)


def test_every_permission_is_explained() -> None:
    assert set().union(*PERMISSIONS.values()) == set(PERMISSION_MEANINGS)


def test_may_reads_the_table_and_grants_nothing_to_strangers() -> None:
    assert may("writer", "write")
    assert not may("reader", "write")
    assert not may("root", "read")
    assert not may("nobody", "read")


def test_writers_correct_their_own_and_reviewers_everybodys() -> None:
    for role in ("writer", "reader", "operator", "root", "nobody"):
        assert may_correct(role, "ann", "ann")
        assert may_correct(role, "ann", None)
        assert may_correct(role, None, None)
        assert not may_correct(role, "ann", "bob")
        assert not may_correct(role, None, "bob")
    for role in ("reviewer", "admin"):
        assert may_correct(role, "ann", "bob")
        assert may_correct(role, None, "bob")


def test_unknown_roles_and_scopes_are_refused_with_the_list() -> None:
    assert check_role("admin") == "admin"
    assert check_scope("act_as") == "act_as"
    with pytest.raises(VocabularyError) as caught:
        check_role("Admin")
    assert (caught.value.did_you_mean, caught.value.allowed) == ("admin", tuple(PERMISSIONS))
    with pytest.raises(VocabularyError) as caught:
        check_scope("act-as")
    assert caught.value.did_you_mean == "act_as"
