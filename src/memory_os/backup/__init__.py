"""Backup of a whole instance and its return: a dump of Postgres, from which everything else can be made again."""
