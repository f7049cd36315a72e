"""A simulated year of a person and a team: its history, its clock, a life through the API, and what must hold of it."""
