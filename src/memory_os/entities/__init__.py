"""Entities: declared people, organisations, projects and other things, their names, and their links to records."""
