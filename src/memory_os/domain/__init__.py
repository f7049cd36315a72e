"""Pure rules without I/O, kept as tables that code, API errors, docs and console read."""
