"""The work of each rule: one place where a run finds how to plan, to make and to take back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from memory_os.cycles.behaviors import EVOLVING
from memory_os.cycles.dropping import DROPPING
from memory_os.cycles.extracting import EXTRACTION
from memory_os.cycles.fading import FADING, PRUNING
from memory_os.cycles.forming import FORMING
from memory_os.cycles.merging_duplicates import MERGING
from memory_os.cycles.patterns import PATTERNS
from memory_os.cycles.planning import Work
from memory_os.cycles.profiling import PROFILES
from memory_os.cycles.setting_aside import EXPIRY, RETIREMENT
from memory_os.cycles.staling import STALENESS
from memory_os.domain.cycles.rules import RuleName

WORKS: Final[Mapping[RuleName, Work]] = MappingProxyType(
    {
        "merge_duplicates": MERGING,
        "drop_entities": DROPPING,
        "decay_edges": FADING,
        "expire_opportunities": EXPIRY,
        "mark_stale": STALENESS,
        "extract_again": EXTRACTION,
        "find_patterns": PATTERNS,
        "write_profiles": PROFILES,
        "prune_edges": PRUNING,
        "form_schemas": FORMING,
        "evolve_behaviors": EVOLVING,
        "archive_retired": RETIREMENT,
    }
)
"""By rule."""
