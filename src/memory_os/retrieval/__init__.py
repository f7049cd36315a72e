"""Retrieval: from a question to a bounded, labelled, permitted and current context pack, and the log of it."""
