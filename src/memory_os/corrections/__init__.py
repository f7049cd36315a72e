"""Corrections: what somebody says is wrong with a memory, and what comes of it."""
