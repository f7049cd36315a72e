"""The one hierarchy of errors that reach a client, and the stable code of each.

```
MemoryOSError
├── AuthenticationError        401  unauthenticated
├── PermissionDeniedError      403  forbidden
├── NotFoundError              404  not-found
├── ConflictError              409  conflict
│   ├── IdempotencyError       409  idempotency-key-reused
│   ├── RebuildRunningError    409  rebuild-running
│   └── VerificationRunningError  409  verification-running
├── GoneError                  410  gone
├── PreconditionFailedError    412  version-mismatch
├── PayloadTooLargeError       413  too-large
├── InvalidInputError          422  invalid-input
│   ├── UnknownTermError       422  unknown-term
│   └── OwnPackError           422  own-pack
├── RateLimitedError           429  rate-limited
├── FeatureOffError            400  feature-off
└── UnavailableError           503  unavailable
StartupError                   never sent: stops a start with one line that says the mend
```

`api.problems` is the one place that turns these into RFC 9457 documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one part of a request; `pointer` is a JSON pointer (RFC 6901) into the body or a parameter."""

    pointer: str
    detail: str


class MemoryOSError(Exception):
    """Base class of everything that a client is told.

    Args:
        detail: One sentence for the client. Never holds another tenant's data or the database's own message.
        errors: The parts of the request that are at fault.
        extra: Further members of the problem document, such as `allowed` and `did_you_mean`.
        headers: Response headers that belong to the error, such as `Retry-After`.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        *,
        errors: Sequence[FieldError] = (),
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = tuple(errors)
        self.extra = dict(extra or {})
        self.headers = dict(headers or {})


class AuthenticationError(MemoryOSError):
    """No token, or one that is unknown, expired or revoked; the answer does not say which."""

    status = 401
    code = "unauthenticated"
    title = "A valid token is needed"


class PermissionDeniedError(MemoryOSError):
    """The token is good but its role or scopes don't allow this call."""

    status = 403
    code = "forbidden"
    title = "Not allowed for this token"


class NotFoundError(MemoryOSError):
    """No such record for this reader: absent, invisible and another tenant's are answered alike."""

    status = 404
    code = "not-found"
    title = "Not found"


class ConflictError(MemoryOSError):
    """The request contradicts what is stored."""

    status = 409
    code = "conflict"
    title = "Conflicts with what is stored"


class IdempotencyError(ConflictError):
    """The idempotency key was used with another request."""

    code = "idempotency-key-reused"
    title = "Idempotency key used with another request"


class RebuildRunningError(ConflictError):
    """A rebuild of this tenant's graph is pending or running already."""

    code = "rebuild-running"
    title = "A rebuild is running already"


class VerificationRunningError(ConflictError):
    """A comparison of this tenant's graph is pending or running, and what was asked for is more than that."""

    code = "verification-running"
    title = "A comparison is running already"


class GoneError(MemoryOSError):
    """What the request asks for was there, and has been erased since."""

    status = 410
    code = "gone"
    title = "Erased"


class PreconditionFailedError(MemoryOSError):
    """`If-Match` names another version than the stored one."""

    status = 412
    code = "version-mismatch"
    title = "The record has changed"


class PayloadTooLargeError(MemoryOSError):
    """The request is larger than the service accepts."""

    status = 413
    code = "too-large"
    title = "Too large"


class InvalidInputError(MemoryOSError):
    """The request is understood but a value in it can't be accepted."""

    status = 422
    code = "invalid-input"
    title = "Invalid input"


class UnknownTermError(InvalidInputError):
    """A word that a closed vocabulary does not have; the answer lists the allowed ones and the nearest."""

    code = "unknown-term"
    title = "Not in the vocabulary"


class OwnPackError(InvalidInputError):
    """The text is, or holds, a context pack of ours: what memory has shown is no new evidence."""

    code = "own-pack"
    title = "A context pack is no memory"


class RateLimitedError(MemoryOSError):
    """The tenant sends more than its rate."""

    status = 429
    code = "rate-limited"
    title = "Too many requests"


class FeatureOffError(MemoryOSError):
    """The call needs a setting that is off; the detail names it."""

    status = 400
    code = "feature-off"
    title = "Switched off"


class UnavailableError(MemoryOSError):
    """A part that the call can't do without does not answer now."""

    status = 503
    code = "unavailable"
    title = "Temporarily unavailable"


class StartupError(Exception):
    """The service must not start; the message is one line that says the mend."""
