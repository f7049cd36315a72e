SELECT tenant_id, token_id, role, scopes, user_id, groups FROM authenticate(%(prefix)s, %(hash)s)
