-- Comparisons that show differences: in these, rows that go may be named.
SELECT id, sample FROM graph_verifications WHERE tenant_id = %(tenant_id)s AND sample <> '[]' FOR UPDATE
