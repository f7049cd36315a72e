"""The clock of a simulated year: rows that the real clock has dated are put to the time that is played."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

SHIFT: Final = Path(__file__).with_name("shift.sql").read_text()


class Clock:
    """Reads and puts the times of one tenant, as the superuser."""

    def __init__(self, owner_url: str, tenant_id: UUID) -> None:
        self._connection = psycopg.connect(owner_url, autocommit=True, row_factory=dict_row)
        self._connection.execute("SET session_replication_role = replica")
        self.tenant_id = tenant_id

    def now(self) -> datetime:
        """The real time, of the clock that dates rows."""
        (row,) = self.rows("SELECT clock_timestamp() AS now")
        now: datetime = row["now"]
        return now

    def begin(self, moment: datetime) -> None:
        """Put the tenant's own beginning, before which no cycle is owed, to a simulated moment."""
        self._connection.execute(
            "UPDATE tenants SET created_at = %s, updated_at = %s WHERE tenant_id = %s", (moment, moment, self.tenant_id)
        )

    def shift(self, since: datetime, moment: datetime) -> None:
        """Put what was written since a real moment to a simulated one."""
        with self._connection.transaction():
            for name, value in (("tenant", self.tenant_id), ("since", since), ("moment", moment)):
                self._connection.execute("SELECT set_config(%s, %s, true)", (f"year.{name}", str(value)))
            self._connection.execute(SHIFT)

    def rows(self, query: str, **values: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - whatever a query takes
        """Rows of a query, whoever may see them."""
        return list(self._connection.execute(query, values))  # type: ignore[arg-type] # our own queries

    def count(self, table: str, where: str = "true") -> int:
        """Rows that the tenant has in a table."""
        (row,) = self.rows(
            f"SELECT count(*) AS count FROM {table} WHERE tenant_id = %(tenant)s AND ({where})",  # noqa: S608 - our own words
            tenant=self.tenant_id,
        )
        return int(row["count"])

    def close(self) -> None:
        """Disconnect."""
        self._connection.close()
