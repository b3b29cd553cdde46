"""What answers offline in the place of a team's language models.

* `RULES` - distilling, voting and judging, for `drift_agents.llm.rules.RuleModel`
"""

from __future__ import annotations

from collections.abc import Mapping

from drift_agents.llm.rules import Rule
from drift_agents.memory.distillation import RULES as DISTILLING
from drift_agents.team.judge import CHOICE, choose
from drift_agents.team.vote import VOTE, judge

RULES: Mapping[str, Rule] = {**DISTILLING, VOTE["title"]: judge, CHOICE["title"]: choose}
"""Title of a question -> rule."""
