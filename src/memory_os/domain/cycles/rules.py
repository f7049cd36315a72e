"""The cycles and their rules, one row each, in the order in which a run takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

CycleName = Literal["nightly", "weekly", "monthly"]

RuleName = Literal[
    "merge_duplicates",
    "drop_entities",
    "decay_edges",
    "expire_opportunities",
    "mark_stale",
    "extract_again",
    "find_patterns",
    "write_profiles",
    "prune_edges",
    "form_schemas",
    "evolve_behaviors",
    "archive_retired",
]


SERVICE_ROLE: Final = "cycle"
"""The role in whose name a cycle acts, in histories and logs; no token has it, and it has no permission."""


@dataclass(frozen=True, slots=True)
class Cycle:
    """A cycle.

    Attributes:
        name: As runs and commands call it.
        cron: When it runs unless the tenant says otherwise, in the tenant's time zone.
        meaning: What it is for, in a sentence.
    """

    name: CycleName
    cron: str
    meaning: str


CYCLES: Final[Mapping[str, Cycle]] = MappingProxyType(
    {
        cycle.name: cycle
        for cycle in (
            Cycle("nightly", "0 2 * * *", "Tidies up after the day."),
            Cycle("weekly", "0 2 * * 0", "Looks for patterns across the week, and writes profiles."),
            Cycle("monthly", "0 2 1 * *", "Forgets what nobody needed, and forms what recurs into Insights."),
        )
    }
)
"""The cycles by name. Where several are due at once, they run in this order."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that a cycle does.

    Attributes:
        name: As actions call it.
        cycle: Which cycle does it.
        meaning: What it does, in a sentence.
    """

    name: RuleName
    cycle: CycleName
    meaning: str


_ROWS: Final = (
    Rule(
        "merge_duplicates",
        "nightly",
        "Merges memories that say the same and that the gate let through, by the same judgement.",
    ),
    Rule("drop_entities", "nightly", "Removes derived entities that nothing names and no edge or link holds."),
    Rule("decay_edges", "nightly", "Takes confidence from edges that no answer has used for a week."),
    Rule("expire_opportunities", "nightly", "Expires Opportunities whose date has passed."),
    Rule("mark_stale", "nightly", "Marks References and Resources stale that nobody has used for long."),
    Rule("extract_again", "nightly", "Has memories read again whose extraction failed or is of an older extractor."),
    Rule("find_patterns", "weekly", "Proposes an Insight for what grew together across layers this week."),
    Rule("write_profiles", "weekly", "Writes a new version of each profile, with what has changed."),
    Rule("prune_edges", "monthly", "Archives edges that are weak, seldom used, and unused for a month."),
    Rule("form_schemas", "monthly", "Proposes an Insight for what is used together again and again."),
    Rule("evolve_behaviors", "monthly", "Proposes an Insight for a Behavior that recurs."),
    Rule("archive_retired", "monthly", "Archives what refers to entities that are retired or past their time."),
)

RULES: Final[Mapping[str, Rule]] = MappingProxyType({rule.name: rule for rule in _ROWS})
"""The rules by name."""


def rules_of(cycle: str) -> tuple[Rule, ...]:
    """The rules of a cycle, in their order."""
    return tuple(rule for rule in _ROWS if rule.cycle == cycle)
