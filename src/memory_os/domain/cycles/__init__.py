"""The rules of forgetting and consolidation: what a nightly, weekly or monthly cycle does, and to what."""
