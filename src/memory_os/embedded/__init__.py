"""The laptop stack: an embedded Postgres, a FalkorDB, the service's own processes and the supervisor of them all.

Everything here needs the `embedded` extra. Import it only inside the command that runs it, so that an installation
against servers of one's own never needs the extra.
"""
