"""The house in words.

* `HouseFacts` - where the agent stands, what it sees, holds and has done
"""

from __future__ import annotations

from collections.abc import Mapping

from drift_agents.envs.house.matching import NOTHING, ShownHouse, read_house_state
from drift_agents.policy.alternatives import fold_alternatives
from drift_agents.policy.facts import PlainFacts
from drift_agents.prompt.view import PromptView, Recollection


class HouseFacts(PlainFacts):
    """Where the agent stands, what it sees, holds and has done.

    Example:
        >>> state = '{"house": 7, "task": "put a mug in bed", "at": "shelf 1", "door": "none", "sees": ["mug 2"], '
        >>> state += '"holds": "nothing", "done": [], "opened": [], "visited": ["shelf 1"], "says": ""}'
        >>> HouseFacts().describe_state(state)
        'shelf 1, seeing mug 2, holding nothing'
    """

    cut_states = ('{"house": ', "a place")

    def highest_score(self, task: str) -> float:
        """1: all tasks score from 0 to 1."""
        return 1.0

    def describe_state(self, state: str) -> str:
        """Place, door, what is seen, the hand, what was done, and the last answer; another text as it is."""
        shown = read_house_state(state)
        if shown is None:
            return state
        words = [_place(shown), f"holding {shown.holds}"]
        if shown.done:
            words.append(f"after {', '.join(shown.done)}")
        if shown.says:
            words.append(f'with the answer "{shown.says}"')
        return ", ".join(words)

    def is_of_other_task(self, item: Recollection, view: PromptView) -> bool:
        """Whether the outcome was seen in another task: its way may lead to that task's score."""
        then, now = read_house_state(item.outcome.state), read_house_state(view.state)
        return then is not None and now is not None and then.task != now.task

    def brief_fields(self, view: PromptView) -> Mapping[str, str]:
        """`opened` and `visited`, folded, and `said`, a line with the last answer."""
        shown = read_house_state(view.state)
        if shown is None:
            return {"said": ""}
        lists = {"opened": shown.opened, "visited": shown.visited}
        folded = {name: fold_alternatives(values) if values else NOTHING for name, values in lists.items()}
        return {**folded, "said": f"\nThe last answer: {shown.says}" if shown.says else ""}

    def brief_outcome(self, item: Recollection) -> str:
        """The place, and what differs from before; another text as it is."""
        before, after = read_house_state(item.state), read_house_state(item.outcome.state)
        if before is None or after is None:
            return item.outcome.state
        words = [_place(after)]
        if after.holds != before.holds:
            words.append(f"holding {after.holds}")
        words += [step for step in after.done if step not in before.done and step != item.action]
        if after.says:
            words.append(f'with the answer "{after.says}"')
        return ", ".join(words)

    def brief_end(self, item: Recollection) -> str:
        """What was done, and what was there before; where nothing was done, the place and the action."""
        before, shown = read_house_state(item.state), read_house_state(item.outcome.state)
        if shown is None or not shown.done:
            return super().brief_end(item)
        sights = ", ".join(before.sees) if before is not None and before.at == shown.at else ""
        return ", ".join(shown.done) + f" (seeing {sights})" * bool(sights)

    def state_fields(self, state: str) -> Mapping[str, str]:
        """`place`, `hand`, `done`, `opened`, `visited` and `says`, each in words."""
        shown = read_house_state(state)
        if shown is None:
            return {"place": state} | dict.fromkeys(("hand", "done", "opened", "visited", "says"), "unknown")
        lists = {"done": shown.done, "opened": shown.opened, "visited": shown.visited}
        return {
            "place": _place(shown),
            "hand": shown.holds,
            **{name: ", ".join(values) or NOTHING for name, values in lists.items()},
            "says": shown.says or NOTHING,
        }


def _place(shown: ShownHouse) -> str:
    if shown.at == NOTHING:
        return "the start"
    if not shown.is_seen:
        return f"{shown.at}, which is {shown.door}"
    return f"{shown.at}, seeing {', '.join(shown.sees) or NOTHING}"
