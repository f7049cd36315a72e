"""Idempotency keys: the same key and request get the first answer, in the transaction that made it.

Answers are kept sealed with a key derived from the caller's own token, so that the table holds neither texts nor
freshly made tokens in the clear: whoever can't repeat the request can't read its answer either. Beside one stand the
ids of the records that it names, so that it can be erased with them.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert

from memory_os.errors import GoneError, IdempotencyError
from memory_os.storage import tables
from memory_os.storage.database import Transaction

_TABLE = tables.idempotency_keys
_NONCE_BYTES = 12

MOST_IDS: Final = 5_000
"""Ids that are kept beside an answer. One that names more is erased with whatever record is erased next."""

_MORE: Final = UUID(int=0)
"""Stands for the ids of an answer that names more than can be kept; no record has it."""

_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class KeptAnswer(msgspec.Struct):
    """An answer as it is kept: what was sent, without the status, which is a column."""

    headers: dict[str, str]
    body: bytes


_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(KeptAnswer).decode


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a request under a key."""

    key: str
    principal: str
    request_hash: bytes
    sealing_key: bytes

    @classmethod
    def of(cls, key: str, principal: str, bearer: str, request: bytes) -> Attempt:
        """An attempt from the request's parts; `request` is method, path, query and body in one."""
        digest = hashlib.sha256(request).digest()
        seal = hashlib.sha256(b"\0".join((b"memory-os-answer", bearer.encode(), key.encode(), digest))).digest()
        return cls(key, principal, digest, seal)

    def seal(self, answer: KeptAnswer) -> bytes:
        """Encrypt an answer."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.sealing_key).encrypt(nonce, _pack(answer), None)

    def open(self, sealed: bytes) -> KeptAnswer:
        """Decrypt an answer.

        Raises:
            IdempotencyError: If it was sealed with another token's secret: the token has been rotated since.
        """
        try:
            return _unpack(AESGCM(self.sealing_key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None))
        except InvalidTag:
            raise IdempotencyError(
                "the request was answered before the token was rotated, and that answer can't be read any more: "
                "read the record, or take a new key"
            ) from None


def _mine(tx: Transaction, attempt: Attempt) -> Any:  # noqa: ANN401 - a SQL condition
    return (
        (_TABLE.c.tenant_id == tx.tenant_id) & (_TABLE.c.principal == attempt.principal) & (_TABLE.c.key == attempt.key)
    )


async def find_answer(tx: Transaction, attempt: Attempt) -> tuple[int, KeptAnswer] | None:
    """The first answer to this key, or None while there is none.

    Raises:
        IdempotencyError: If the key came with another request.
        GoneError: If what the first request made, or was told of, has been erased.
    """
    columns = _TABLE.c
    found = select(columns.request_hash, columns.status, columns.body, columns.erased_at).where(_mine(tx, attempt))
    row = await tx.row(found)
    if row is None:
        return None
    if bytes(row["request_hash"]) != attempt.request_hash:
        raise IdempotencyError("the idempotency key was used with another request: take a new one")
    if row["erased_at"] is not None:
        raise GoneError("what this request made was erased; to make it again, take a new key")
    return row["status"], attempt.open(bytes(row["body"]))


async def claim_key(tx: Transaction, attempt: Attempt) -> tuple[int, KeptAnswer] | None:
    """Take the key for this transaction; a concurrent holder is waited for, and its answer returned.

    An erasure is kept waiting from here on: the answer may tell of a record that is erased before it is kept.

    Raises:
        IdempotencyError: If the key came with another request.
        GoneError: If what the first request made, or was told of, has been erased.
    """
    await tx.hot("beside_erasures", {"tenant_id": tx.tenant_id})
    taken = await tx.row(
        insert(_TABLE)
        .values(
            tenant_id=tx.tenant_id,
            principal=attempt.principal,
            key=attempt.key,
            request_hash=attempt.request_hash,
        )
        .on_conflict_do_nothing()
        .returning(_TABLE.c.key)
    )
    return None if taken is not None else await find_answer(tx, attempt)


async def keep_answer(
    tx: Transaction, attempt: Attempt, status: int, answer: KeptAnswer, *, lasting: bool = False
) -> None:
    """Keep the answer beside the key, in the transaction of what it tells of.

    Args:
        tx: The unit of work.
        attempt: The try of the request.
        status: The answer's status.
        answer: The answer.
        lasting: It stays when records that it names are erased: it is the receipt of just that.
    """
    ids = [] if lasting else ids_in(answer.body)
    kept = {"status": status, "body": attempt.seal(answer), "record_ids": ids}
    await tx.run(update(_TABLE).where(_mine(tx, attempt)).values(kept))


def ids_in(body: bytes) -> list[UUID]:
    """The ids that an answer names, or the nil id where these are more than can be kept."""
    found = set(_ID.findall(body))
    return sorted(UUID(ident.decode()) for ident in found) if len(found) <= MOST_IDS else [_MORE]
