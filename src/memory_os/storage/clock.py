"""The time of a unit of work: the database's clock, the same for all of its statements."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select

from memory_os.storage.database import Transaction


async def transaction_time(tx: Transaction) -> datetime:
    """When the transaction began, as `now()` says it in its statements."""
    found: datetime = (await tx.run(select(func.now()))).scalar_one()
    return found
