"""Administration: tenants, tokens, the audit log, and the first start of an instance."""
