"""Ranking the best of what was found anew: by the tokens of the bundled model, or by an endpoint.

Importing this package loads neither numpy nor httpx; an adapter's libraries come in when it is made.
"""
