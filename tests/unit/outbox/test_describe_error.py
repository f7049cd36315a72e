"""What operators see of an attempt that failed."""

from __future__ import annotations

from uuid import uuid4

from memory_os.outbox.queue import describe_error


def failure(message: str) -> Exception:
    try:
        raise ValueError(message)
    except ValueError as error:
        return error


def test_the_same_kind_of_fault_has_one_fingerprint() -> None:
    worker = uuid4()
    one = describe_error(failure("bad value 17 in 'abc' of 0af3b2c1d4e5"), worker)
    two = describe_error(failure("bad value 99 in 'xyz' of ffffffff1234"), worker)
    other = describe_error(failure("another fault"), worker)
    assert one["fingerprint"] == two["fingerprint"] != other["fingerprint"]
    assert one["class"] == "ValueError"
    assert one["worker"] == str(worker)
    assert "test_describe_error" in one["traceback"]


def test_nothing_in_it_is_too_long_or_unstorable() -> None:
    entry = describe_error(failure("x\x00y" * 10_000), uuid4())
    assert len(entry["message"]) <= 500
    assert "\x00" not in entry["message"] + entry["traceback"]
    assert len(entry["traceback"]) <= 12 * 201
