"""Putting memories that belong together into words, by a model behind an endpoint.

Importing this package does not load httpx; it comes in when a writer is made.
"""
