"""What a language model is good for beside actions: reflection, critique, skills, distillation, votes and judgements.

    drift-agents serve-local --fetch --port 8011
    python examples/side_questions.py --model smollm2-135m-instruct --base-url http://127.0.0.1:8011/v1

Actions are chosen by rules that parse messages, and depend on the prompts alone; all other requests are sent to
the model. Each memory and each team plays the same episodes twice: with the declared rules, and with the model in their
place. The table shows how many requests the model got, how many answers could be used (after two re-asks at most),
and in how many episodes an action differs.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from drift_agents.errors import ContextLengthError, DriftAgentsError
from drift_agents.experiment.episode import CellSetup, play
from drift_agents.experiment.loader import load_experiment
from drift_agents.experiment.plan import plan_cells
from drift_agents.llm.base import Completion, Message, Model
from drift_agents.llm.schema import violations
from drift_agents.llm.service import Service
from drift_agents.policy.message_reader.reader import MessageModel
from drift_agents.types import Episode

MEMBERS = [{"name": name, "policy": {"llm": {"temperature": 1.0}}} for name in ("first", "second", "third")]
ERR = 0.2
"""How often members of a team choose another action than the rules, so that there is something to judge."""
PLAYERS: Mapping[str, Mapping[str, Any]] = {
    "generative_agents": {"memory": "generative_agents"},
    "memory_bank": {"memory": "memory_bank"},
    "voyager": {"memory": "voyager"},
    "beliefmem": {"memory": "beliefmem"},
    "reasoning_bank": {"memory": {"reasoning_bank": {"pool": "all"}}},
    "edv": {"memory": "consensus", "team": {"edv": {"members": MEMBERS, "online": True}}},
    "judge": {"memory": "vanilla", "team": {"judge": {"members": MEMBERS}}},
}
"""Memories and teams that send requests of their own."""


class SideService(Service):
    """Sends all requests but those for actions, and counts them by the title of their schema.

    Args:
        name: the model; without one the declared rules answer.
        base_url: its server.
    """

    default_model = "any"

    def __init__(self, name: str | None = None, base_url: str | None = None) -> None:
        super().__init__(timeout=600.0)
        self.sent, self.used = Counter[str](), Counter[str]()
        self._side = None if name is None else super().model(name, base_url)

    def model(self, name: str, base_url: str | None = None, form: str = "auto", price: object = None) -> Model:
        """Return the model of a player."""
        return _SideModel(self, self._side)


class _SideModel:
    name = "side"

    def __init__(self, service: SideService, side: Model | None) -> None:
        self._service, self._side = service, side

    def complete(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        sample_index: int = 0,
    ) -> Completion:
        """Choose an action, or send the request."""
        title = "" if schema is None else str(schema.get("title"))
        if schema is None or title == "action":
            return MessageModel(err=ERR if sample_index else 0.0).complete(messages, schema, parameters, sample_index)
        is_repeated = messages[-1].content.startswith("Your answer cannot be used")
        self._service.sent[title] += not is_repeated
        if self._side is None:
            raise ContextLengthError("not sent")  # the error after which rules answer
        answer = self._side.complete(messages, schema, parameters, sample_index)
        self._service.used[title] += answer.data is not None and not violations(answer.data, schema)
        return answer


def play_episodes(player: Mapping[str, Any], service: Service, schedule: str, episodes: int) -> list[Episode]:
    """The first episodes of a schedule.

    Args:
        player: of `PLAYERS`.
        service: the language models.
        schedule: its name.
        episodes: how many.
    """
    data = {
        "name": "side",
        "schedules": schedule,
        "agents": {**player, "policy": {"llm": {"max_tokens": 300}}},
        "seeds": 1,
        "episodes": episodes,
    }
    experiment = load_experiment(data)
    (cell,) = plan_cells(experiment)
    played: list[Episode] = []

    def keep(_: CellSetup, __: int, episode: Episode) -> None:
        played.append(episode)

    list(islice(play(cell, experiment.settings_of(schedule), keep, service), episodes))
    return played


def read_actions(episode: Episode) -> list[str]:
    """The actions of an episode.

    Args:
        episode: with its trace.
    """
    return [step.experience.action for step in episode.trace]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command's options.

    Args:
        arguments: those of the command line if not given.
    """
    parser = argparse.ArgumentParser(description="Count how often a model's answers beside actions can be used.")
    parser.add_argument("--model", required=True)
    parser.add_argument("--base-url")
    parser.add_argument("--schedule", default="frozen_lake/implicit")
    parser.add_argument("--episodes", type=int, default=4)
    parser.add_argument("--players", nargs="+", choices=list(PLAYERS), default=list(PLAYERS))
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Play, and print the table.

    Args:
        arguments: those of the command line if not given.

    Returns:
        The rows of the table.
    """
    options = parse(arguments)
    rows = []
    print("| part | request | sent | usable | episodes changed |\n|---|---|---|---|---|")
    for name in options.players:
        by_rules = play_episodes(PLAYERS[name], SideService(), options.schedule, options.episodes)
        service = SideService(options.model, options.base_url)
        by_model = play_episodes(PLAYERS[name], service, options.schedule, options.episodes)
        service.close()
        pairs = zip(by_rules, by_model, strict=True)
        changed = sum(read_actions(first) != read_actions(second) for first, second in pairs)
        for title, sent in sorted(service.sent.items()):
            rows.append({"part": name, "request": title, "sent": sent, "usable": service.used[title]})
            print(
                f"| {name} | {title} | {sent} | {service.used[title]} | {changed} of {options.episodes} |", flush=True
            )
        rows.append({"part": name, "changed": changed, "episodes": options.episodes})
    return rows


if __name__ == "__main__":
    try:
        main()
    except DriftAgentsError as error:
        sys.exit(f"side_questions: {error}")
