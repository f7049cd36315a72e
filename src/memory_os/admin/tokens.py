"""Tokens: made once, shown once, kept as hashes."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from memory_os.admin.token_use import note_use
from memory_os.domain.principal import Principal
from memory_os.storage.database import Database, Scope

PREFIX_CHARS = 12
SECRET_BYTES = 32
_MAX_LENGTH = 200


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token that has just been made: the only time that its secret is known."""

    token: str
    prefix: str
    secret_hash: bytes


def make_token() -> NewToken:
    """A random token, `mos_<prefix>_<secret>`; 256 bits of secret need no slow hash."""
    alphabet = "abcdefghijklmnopqrstuvwxyz0123456789"
    prefix = "".join(secrets.choice(alphabet) for _ in range(PREFIX_CHARS))
    secret = secrets.token_urlsafe(SECRET_BYTES)
    return NewToken(f"mos_{prefix}_{secret}", prefix, hash_secret(secret))


def hash_secret(secret: str) -> bytes:
    """SHA-256 of a token's secret."""
    return hashlib.sha256(secret.encode()).digest()


def split_token(token: str) -> tuple[str, str] | None:
    """Prefix and secret of a token, or None where it does not have the form of one."""
    kind, _, rest = token.partition("_")
    prefix, _, secret = rest.partition("_")
    if kind != "mos" or len(prefix) != PREFIX_CHARS or not secret or len(token) > _MAX_LENGTH or not token.isascii():
        return None
    return prefix, secret


async def authenticate(database: Database, token: str) -> Principal | None:
    """The principal of a token; None where it is malformed, unknown, expired, revoked, or its tenant suspended."""
    parts = split_token(token)
    if parts is None:
        return None
    return await authenticate_hash(database, parts[0], hash_secret(parts[1]))


async def authenticate_hash(database: Database, prefix: str, secret_hash: bytes) -> Principal | None:
    """Like `authenticate`, from what a session keeps of a token."""
    parameters = {"prefix": prefix, "hash": secret_hash}
    rows = await database.run(Scope("memory_os_app"), lambda tx: tx.hot("authenticate", parameters))
    if not rows:
        return None
    row = rows[0]
    await note_use(database, row["tenant_id"], row["token_id"])
    return Principal(
        tenant_id=row["tenant_id"],
        role=row["role"],
        token_id=row["token_id"],
        user_id=row["user_id"],
        groups=tuple(row["groups"]),
        scopes=frozenset(row["scopes"]),
    )
