"""What the catalog must say for tenants to be apart: each rule is a query that names what breaks it."""

from __future__ import annotations

from typing import Any

import psycopg

WITHOUT_TENANT = {
    "alembic_version": "one row: the schema's revision",
    "embedding_models": "models and their dimension, which are the instance's",
    "workers": "a worker serves all tenants; its row names none",
    "graph_servers": "a graph server holds the graphs of all; its row names none",
}
"""Tables of the service that hold nothing of a tenant's, and why."""

SERVICE_ROLES = ("memory_os_app", "memory_os_worker")
ROLES = (*SERVICE_ROLES, "memory_os_owner")

_TABLES = """
WITH tables AS (
    SELECT c.*, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') AS tenant
    FROM pg_class c WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
)
"""
_KEYS = """
WITH named AS (
    SELECT c.oid, c.relname, a.attname, a.attnum FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0
)
"""

RULES = {
    "has no tenant_id and is on no list": (
        _TABLES + "SELECT relname FROM tables WHERE NOT tenant AND relname <> ALL (%(without)s)"
    ),
    "does not enable and force row-level security": (
        _TABLES + "SELECT relname FROM tables WHERE tenant AND NOT (relrowsecurity AND relforcerowsecurity)"
    ),
    "has not exactly one policy for each service role": (
        _TABLES + "SELECT t.relname || ' ' || r.rolname FROM tables t, pg_roles r "
        "WHERE t.tenant AND NOT t.relispartition AND r.rolname = ANY (%(service_roles)s) "
        "AND (SELECT count(*) FROM pg_policy p WHERE p.polrelid = t.oid AND r.oid = ANY (p.polroles)) <> 1"
    ),
    "has a policy for everybody": (
        _TABLES + "SELECT t.relname || ' ' || p.polname FROM tables t JOIN pg_policy p ON p.polrelid = t.oid "
        "WHERE 0 = ANY (p.polroles) AND NOT (t.relispartition AND pg_get_expr(p.polqual, t.oid) = 'false')"
    ),
    "is a partition that can be reached past its parent": (
        _TABLES + "SELECT t.relname FROM tables t, pg_roles r WHERE t.relispartition AND r.rolname = ANY (%(roles)s) "
        "AND r.rolname <> 'memory_os_owner' AND has_table_privilege(r.oid, t.oid, 'SELECT, INSERT, UPDATE, DELETE')"
    ),
    "has a policy that is not for every command, with a check": (
        "SELECT polname FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid AND NOT c.relispartition "
        "WHERE polcmd <> '*' OR polwithcheck IS NULL OR NOT polpermissive"
    ),
    "has a policy that does not read the tenant": (
        "SELECT polname FROM pg_policy p WHERE pg_get_expr(polqual, polrelid) NOT LIKE '%%memory_os.tenant_id%%' "
        "AND pg_get_expr(polqual, polrelid) <> 'false' AND polname <> ALL (%(across)s)"
    ),
    "has a key that does not begin with the tenant": (
        _KEYS + "SELECT i.indexrelid::regclass::text FROM pg_index i JOIN named n ON n.oid = i.indrelid "
        "AND n.attname = 'tenant_id' WHERE (i.indisunique OR i.indisprimary) AND i.indkey[0] <> n.attnum"
    ),
    "has a foreign key that does not begin with the tenant": (
        _KEYS + "SELECT k.conname FROM pg_constraint k JOIN named n ON n.oid = k.conrelid AND n.attname = 'tenant_id' "
        "LEFT JOIN named f ON f.oid = k.confrelid AND f.attname = 'tenant_id' "
        "WHERE k.contype = 'f' AND (k.conkey[1] <> n.attnum OR k.confkey[1] IS DISTINCT FROM f.attnum)"
    ),
    "is a role that policies don't bind": (
        "SELECT rolname FROM pg_roles WHERE rolname = ANY (%(roles)s) AND (rolsuper OR rolbypassrls OR rolcreaterole)"
    ),
    "is a service role that may become another": (
        "SELECT s.rolname || ' ' || r.rolname FROM pg_roles s, pg_roles r WHERE s.rolname = ANY (%(service_roles)s) "
        "AND r.rolname <> s.rolname AND pg_has_role(s.oid, r.oid, 'MEMBER')"
    ),
    "belongs to a service role": (
        "SELECT relname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = ANY (%(service_roles)s)"
    ),
    "may be truncated, referenced or triggered by a service role": (
        _TABLES + "SELECT t.relname || ' ' || r.rolname FROM tables t, pg_roles r "
        "WHERE r.rolname = ANY (%(service_roles)s) "
        "AND has_table_privilege(r.oid, t.oid, 'TRUNCATE, REFERENCES, TRIGGER')"
    ),
    "is granted to everybody": (
        "SELECT relname FROM pg_class c, aclexplode(relacl) a WHERE a.grantee = 0 "
        "AND relnamespace = 'public'::regnamespace"
    ),
    "is a schema in which a service role may create": (
        "SELECT nspname || ' ' || r.rolname FROM pg_namespace, pg_roles r WHERE nspname = 'public' "
        "AND r.rolname = ANY (%(service_roles)s) AND has_schema_privilege(r.oid, 'public', 'CREATE')"
    ),
    "is a function that runs as its owner without a pinned search_path": (
        "SELECT proname FROM pg_proc p WHERE prosecdef AND pronamespace = 'public'::regnamespace AND NOT EXISTS "
        "(SELECT 1 FROM unnest(proconfig) AS c WHERE c ~ '^search_path=pg_catalog, public, pg_temp$')"
    ),
    "is a function that runs as its owner for everybody": (
        # A trigger's function can't be called, and whoever makes a trigger needs to own the table.
        "SELECT proname FROM pg_proc p WHERE prosecdef AND pronamespace = 'public'::regnamespace "
        "AND prorettype <> 'trigger'::regtype AND has_function_privilege('public', p.oid, 'EXECUTE')"
    ),
    "is a view, which would show its owner's rows": (
        "SELECT relname FROM pg_class WHERE relkind IN ('v', 'm') AND relnamespace = 'public'::regnamespace"
    ),
}

ACROSS_TENANTS = {
    "tenants_worker": "a worker looks for tenants with work",
    "tenants_owner": "`authenticate` runs before a tenant is known",
    "tokens_owner": "the same",
    "tokens_worker": "is false: workers have no business with tokens",
    "outbox_events_worker": "the queue is one for all tenants",
    "outbox_events_owner": "`outbox_gauges` counts all of it",
    "projection_leases_worker": "one writer a tenant graph, whoever it is",
    "graph_rebuilds_worker": "jobs of all tenants",
    "graph_verifications_worker": "the same",
    "graph_verifications_owner": "`graph_gauges` reads the newest of each",
    "graph_states_worker": "one worker looks after all graphs",
    "graph_states_owner": "`graph_gauges` reads all of it",
    "retrieval_edges_worker": "a worker looks for tenants with walks that wait",
    "graph_tombstones_worker": "they are pruned for all tenants at once",
    "graph_tombstones_owner": "a trigger leaves them wherever rows are deleted",
    "postings_owner": "triggers keep them wherever rows are written, by the rows' own tenant",
}
"""Policies that do not read the tenant, and why."""


def faults_of(connection: psycopg.Connection[Any]) -> dict[str, list[str]]:
    """What breaks each rule; empty for a catalog that keeps tenants apart."""
    parameters = {
        "without": list(WITHOUT_TENANT),
        "roles": list(ROLES),
        "service_roles": list(SERVICE_ROLES),
        "across": list(ACROSS_TENANTS),
    }
    found = {}
    for rule, query in RULES.items():
        if rows := connection.execute(query, parameters).fetchall():
            found[rule] = sorted({str(row[0]) for row in rows})
    return found
