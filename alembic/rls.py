"""The one helper that puts a table under tenancy: forced row-level security with a policy for each role.

The settings are read through scalar sub-selects, so that they are evaluated once a query, and NULLIF turns the empty
string that a finished SET LOCAL leaves behind back into "unset", which matches no row.
"""

from __future__ import annotations

from alembic import op

TENANT = "(SELECT NULLIF(current_setting('memory_os.tenant_id', true), '')::uuid)"
USER = "(SELECT NULLIF(current_setting('memory_os.user_id', true), ''))"
GROUPS = "(SELECT string_to_array(NULLIF(current_setting('memory_os.groups', true), ''), E'\\x1f'))"
IS_ROOT = "(SELECT current_setting('memory_os.role', true)) = 'root'"

SAME_TENANT = f"tenant_id = {TENANT}"
VISIBLE = (
    f"{SAME_TENANT} AND (visibility = 'tenant' OR user_id = {USER} OR (visibility = 'restricted' AND "
    f"({USER} = ANY (reader_users) OR reader_groups && {GROUPS})))"
)
IS_STEWARD = "(SELECT current_setting('memory_os.role', true)) = 'steward'"
"""The service itself, where what it has to do concerns rows that the one who asked for it may not read."""

READERS = (
    f"visibility = 'tenant' OR user_id = {USER} OR (visibility = 'restricted' AND "
    f"({USER} = ANY (reader_users) OR reader_groups && {GROUPS})) OR {IS_STEWARD}"
)
VISIBLE_OR_STEWARD = f"{SAME_TENANT} AND ({READERS})"


def seen_one(table: str, row: str, column: str) -> str:
    """Whether a reader sees the row of `table` that a row names; a look-up by key, never a hash of all.

    An EXISTS may be planned as a hash of all visible rows, whatever the limit of the query.
    """
    return (
        f"(SELECT seen.id FROM {table} AS seen "  # noqa: S608 - our own names
        f"WHERE seen.tenant_id = {row}.tenant_id AND seen.id = {row}.{column}) IS NOT NULL"
    )


def enable_tenancy(
    table: str,
    *,
    visibility: bool = False,
    seen: str = "",
    written: str = "",
    root: bool = False,
    worker: str = SAME_TENANT,
    owner: str = "",
    narrower: str = "",
    app: str = "SELECT, INSERT, UPDATE, DELETE",
    worker_grants: str = "SELECT, INSERT, UPDATE, DELETE",
) -> None:
    """Force row-level security on a table and grant it to the two service roles.

    Args:
        table: The table; it has a `tenant_id`.
        visibility: The table has `visibility`, `user_id`, `reader_users` and `reader_groups`, which bound its readers.
        seen: What the API's role sees, where it is neither of the two usual conditions.
        written: What it may write, where that is more than it sees.
        root: The instance's root principal sees all tenants' rows (administration and the operators' overview).
        worker: What the worker's role sees; by default the tenant it has entered.
        owner: What the owner sees, for the narrow SECURITY DEFINER functions that it owns; by default nothing at all.
        narrower: A further condition for the API's role.
        app: What the API's role may do.
        worker_grants: What the worker's role may do.
    """
    seen = seen or (VISIBLE if visibility else SAME_TENANT)
    if narrower:
        seen = f"({seen}) AND ({narrower})"
    if root:
        seen = f"({seen}) OR {IS_ROOT}"
    op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
    op.execute(f"CREATE POLICY {table}_app ON {table} TO memory_os_app USING ({seen}) WITH CHECK ({written or seen})")
    op.execute(f"CREATE POLICY {table}_worker ON {table} TO memory_os_worker USING ({worker}) WITH CHECK ({worker})")
    if owner:
        op.execute(f"CREATE POLICY {table}_owner ON {table} TO memory_os_owner USING ({owner}) WITH CHECK ({owner})")
    if app:
        op.execute(f"GRANT {app} ON {table} TO memory_os_app")
    if worker_grants:
        op.execute(f"GRANT {worker_grants} ON {table} TO memory_os_worker")
    op.execute(f"ALTER TABLE {table} OWNER TO memory_os_owner")
    # Until the first ANALYZE the planner takes an unknown tenant_id for a rare value, and may then prefer any index
    # that begins with it to the key that holds the whole condition (measured: a look-up that reads all of a tenant,
    # kept as a generic plan). Tell it the truth about a young database: one tenant has all the rows.
    op.execute(
        "SELECT pg_restore_attribute_stats('schemaname', 'public', 'relname', "
        f"'{table}', 'attname', 'tenant_id', 'inherited', false, 'version', 180000, "
        "'null_frac', 0::real, 'avg_width', 16, 'n_distinct', 1::real)"
    )
