"""The dedup gate's pure rules: the exact key, the conflict guard, and the embedders' calibrated thresholds."""
