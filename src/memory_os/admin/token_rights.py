"""What a token may be, and the rule that nobody hands out more than they have."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID

from msgspec import Meta, Struct

from memory_os.admin.reach import ROOT
from memory_os.checking import unknown_term
from memory_os.domain.principal import Principal
from memory_os.domain.roles import PERMISSIONS, SCOPES, check_role, check_scope
from memory_os.domain.shapes import NO_NUL, Moment, UserId, check_moment, check_text, one_of
from memory_os.domain.vocabulary import VocabularyError
from memory_os.errors import FieldError, InvalidInputError, PermissionDeniedError

RoleName = Annotated[str, one_of(PERMISSIONS)]
ScopeName = Annotated[str, one_of(SCOPES)]


class TokenDraft(Struct, forbid_unknown_fields=True):
    """A token as it is asked for. Root names the tenant, except for further root tokens."""

    role: RoleName
    name: Annotated[str, Meta(max_length=200, pattern=NO_NUL)] = ""
    scopes: Annotated[list[ScopeName], Meta(max_length=8)] = []
    user_id: UserId | None = None
    groups: Annotated[list[UserId], Meta(max_length=200)] = []
    expires_at: Moment | None = None
    tenant_id: UUID | None = None


def check_token(draft: TokenDraft, principal: Principal) -> None:
    """Check what is asked for, and that it is not more than the asker has.

    Raises:
        UnknownTermError: If role or scope are not in the vocabulary.
        InvalidInputError: If the parts contradict each other, with a pointer for each fault.
        PermissionDeniedError: If the token would have more rights than the principal.
    """
    pointer = "/role"
    try:
        check_role(draft.role)
        for index, scope in enumerate(draft.scopes):
            pointer = f"/scopes/{index}"
            check_scope(scope)
    except VocabularyError as error:
        raise unknown_term(error, pointer) from None
    faults = [
        FieldError(f"/{field}", fault)
        for field, text in (("name", draft.name), ("user_id", draft.user_id or ""), ("groups", "".join(draft.groups)))
        if (fault := check_text(text))
    ]
    if draft.groups and draft.user_id is None:
        faults.append(FieldError("/groups", "groups come with a user_id"))
    if draft.user_id is not None and "act_as" in draft.scopes:
        faults.append(FieldError("/scopes", "a token that is bound to a user can't act for others"))
    if draft.expires_at is not None:
        if fault := check_moment(draft.expires_at):
            faults.append(FieldError("/expires_at", fault))
        elif draft.expires_at <= datetime.now(UTC):
            faults.append(FieldError("/expires_at", "must lie in the future"))
    if draft.role == ROOT and (draft.user_id is not None or draft.scopes):
        faults.append(FieldError("/role", "a root token has neither user nor scopes: it reads no records"))
    if faults:
        raise InvalidInputError("the token can't be made as it is", errors=faults)
    check_rights(principal, draft.role, draft.scopes, draft.user_id, draft.groups)


def check_rights(
    principal: Principal, role: str, scopes: Iterable[str], user_id: str | None, groups: Iterable[str]
) -> None:
    """Refuse a token that could do or read what its maker can't; root may hand out any.

    Raises:
        PermissionDeniedError: Naming what is beyond the principal.
    """
    if principal.role == ROOT:
        return
    if not PERMISSIONS[role] <= PERMISSIONS[principal.role]:
        raise PermissionDeniedError(f"the role {principal.role} can't hand out the role {role}")
    if not principal.scopes.issuperset(scopes):
        raise PermissionDeniedError("the token would have scopes that yours has not")
    if user_id is None or (principal.user_id is None and "act_as" in principal.scopes):
        return
    if user_id != principal.user_id or not set(principal.groups).issuperset(groups):
        raise PermissionDeniedError("a token for a user or group that you can't act for needs the act_as scope")
