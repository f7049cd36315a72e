"""REST, version 1: one module a resource, and what every call has in common."""
