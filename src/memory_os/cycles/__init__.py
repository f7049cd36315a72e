"""Cycles of forgetting and consolidation: their runs, what each rule does, and how it is taken back."""
