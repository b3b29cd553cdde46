"""TextWorld's engine for games in PDDL, with states that can be left and come back to.

The engine itself cannot return to a state; it is started again and its operators are repeated. What a command did in
a state is kept, so that this is done once. Import this module after `find_package`.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter, defaultdict
from functools import cache
from typing import Any, NamedTuple

import fast_downward
from textworld.envs.pddl import logic
from textworld.generator.game import EntityInfo
from textworld.logic import Proposition, Type, Variable

from drift_envs.tasks.households import NOTHING


class State(frozenset[tuple[str, ...]]):
    """The facts that commands change: predicate and arguments, without what was only looked at.

    It has the operators that lead here, so that an engine that has forgotten it finds it again.
    """

    way: tuple[_Found, ...] = ()


_CHANGING = frozenset(
    ("atlocation", "objectatlocation", "opened", "inreceptacle", "holds", "isclean", "ishot", "iscool", "istoggled")
) | {"issliced"}
_MOST_STATES = 20_000
"""How many states an engine keeps."""

_LOCK = threading.RLock()
"""One library serves all games of a process."""


class _Found(NamedTuple):
    """An operator: number, number of effects, and its action with the names in it."""

    number: int
    effects: int
    action: Any


class _Node:
    """A state that was reached: the operators on the way to it, and what is known of it."""

    __slots__ = ("after", "commands", "state", "way")

    def __init__(self, state: State, way: tuple[_Found, ...]) -> None:
        self.state, self.way = state, way
        self.commands: dict[str, _Found] | None = None
        self.after: dict[str, tuple[State, str]] = {}


class _Rules(logic.PddlState):  # type: ignore[misc]
    """TextWorld's state of a game, from a translation that was made before.

    Args:
        rules: domain and grammar.
        task: the parsed problem.
        sas: its translation for Fast Downward.
    """

    def __init__(self, rules: Any, task: Any, sas: str) -> None:
        self._facts: Any = defaultdict(set)
        self._vars_by_name: Any = {}
        self._vars_by_type: Any = defaultdict(set)
        self._var_counts: Any = Counter()
        self._logic, self.downward_lib = rules, load_library()
        self._actions = {action.name: action for action in task.actions}
        for kind in task.types:
            try:
                rules.types.add(Type(kind.name, kind.supertype_names))
            except ValueError:  # every game has the type `object`
                continue
        self.name2type = {one.name: one.type_name for one in task.objects}
        atoms = (one for one in task.init if isinstance(one, fast_downward.translate.pddl.conditions.Atom))
        self.add_facts(
            Proposition(one.predicate, [Variable(name, self.name2type[name]) for name in one.args])
            for one in atoms
            if one.predicate != "="
        )
        self._sas = sas.encode()
        self._start = {signature: frozenset(facts) for signature, facts in self._facts.items()}

    def restart(self) -> None:
        """Go back to the start."""
        self.downward_lib.load_sas(self._sas)
        self._facts.clear()
        self._facts.update({signature: set(facts) for signature, facts in self._start.items()})

    def list_operators(self) -> list[str]:
        """The operators that are applicable now, by name, in the library's order."""
        found = (fast_downward.Operator * self.downward_lib.get_applicable_operators_count())()
        self.downward_lib.get_applicable_operators(found)
        return [one.name for one in found]

    def execute(self, operator: _Found) -> list[Any]:
        """Execute an operator that is applicable; returns the facts that it has made, negated ones too."""
        self._operators = {operator.number: fast_downward.Operator(operator.number, b"", operator.effects)}
        return list(self.apply(operator.action))


@cache
def load_library() -> Any:
    """Fast Downward's library, which plays one game at a time."""
    return fast_downward.load_lib()


class AlfworldEngine:
    """A game: what every command does in every state.

    Args:
        domain: the domain in PDDL.
        grammar: texts and commands.
        problem: the problem in PDDL.
        names: what the text calls each object of the problem.
    """

    _playing: AlfworldEngine | None = None

    def __init__(self, domain: str, grammar: str, problem: str, names: dict[str, str]) -> None:
        with _LOCK:
            arguments = sys.argv  # the translator replaces them
            try:
                task, sas = fast_downward.pddl2sas(domain, problem)
            finally:
                sys.argv = arguments
            self._rules = _Rules(logic.GameLogic(domain, grammar), task, sas)
            self._grammar = self._rules._logic.grammar
            self._infos = {one: EntityInfo(one, kind) for one, kind in self._rules.name2type.items()}
            for one, info in self._infos.items():
                info.name, info.indefinite, info.definite = names.get(one, one), "a", "the"
            self.start = State(
                (fact.name, *(one.name for one in fact.arguments))
                for fact in self._rules.facts
                if fact.name in _CHANGING
            )
            self._nodes: dict[State, _Node] = {}
            self._at: State | None = None
            self._answers: dict[Any, str] = {}
            self._steps: dict[tuple[str, str], _Found] = {}
            self._known: dict[str, tuple[str, _Found]] = {}
            self._words: dict[Any, str] = {}
            self._move(self._find_node(self.start))
            self.introduction: str = self._derive("#intro#", {})

    def commands(self, state: State) -> list[str]:
        """The commands that the engine takes in a state, in the order of its list.

        Args:
            state: a state that was reached.
        """
        return sorted(self._find_commands(self._find_node(state)))

    def act(self, state: State, command: str) -> tuple[State, str]:
        """What a command does.

        Args:
            state: a state that was reached.
            command: the command.

        Returns:
            The state after it, and the answer.
        """
        node = self._find_node(state)
        if command in node.after:
            return node.after[command]
        with _LOCK:
            operator = self._find_commands(node).get(command)
            if operator is None:
                return state, NOTHING
            self._move(node)
            made = self._rules.execute(operator)
            positive = {(one.name, *(arg.name for arg in one.arguments)) for one in made if one.name in _CHANGING}
            negative = {(one.name[4:], *(arg.name for arg in one.arguments)) for one in made if one.name[:4] == "not_"}
            after = State((state - negative) | positive)
            after.way = (*node.way, operator)
            self._at = after
            answer = self._answer(operator, after)
            if len(self._nodes) > _MOST_STATES:
                self._nodes = {}
            self._find_node(after)
            node.after[command] = after, answer
            return after, answer

    def _find_node(self, state: State) -> _Node:
        node = self._nodes.get(state)
        if node is None:
            node = self._nodes[state] = _Node(state, state.way)
        return node

    def _find_commands(self, node: _Node) -> dict[str, _Found]:
        if node.commands is None:
            with _LOCK:
                self._move(node)
                names = self._rules.list_operators()
                if not self._known.keys() >= set(names):
                    self._learn()
                found: dict[str, _Found] = {}
                for name in names:
                    text, operator = self._known[name]
                    found.setdefault(text, operator)  # of several with the same words, the engine takes the first
                node.commands = found
        return node.commands

    def _learn(self) -> None:
        """Keep the operators that are applicable now, with their texts: both are the same in every state."""
        for action in self._rules.all_applicable_actions():
            one = self._rules._operators[action.id]
            operator = _Found(action.id, one.nb_effect_atoms, action)
            self._known[one.name] = self._write(action), operator
            if action.name == "gotolocation":
                names = {slot.name: var.name for slot, var in action.mapping.items()}
                self._steps[names["lstart"], names["lend"]] = operator

    def _move(self, node: _Node) -> None:
        """Bring the library to a state."""
        if AlfworldEngine._playing is self and (self._at == node.state or self._walk(node)):
            return
        AlfworldEngine._playing = self
        self._rules.restart()
        for operator in node.way:
            self._rules.execute(operator)
        self._at = node.state

    def _walk(self, node: _Node) -> bool:
        """Go to a state by walking, which takes a tenth of the time of a new start; whether that leads there."""
        if self._at is None:
            return False
        here, there = self._at - node.state, node.state - self._at
        if len(here) != 1 or len(there) != 1:
            return False
        ((what, *_, origin),), ((_, *_, target),) = here, there
        if what != "atlocation":
            return False
        if (origin, target) not in self._steps:
            self._find_commands(self._find_node(self._at))  # which the library has at hand
        operator = self._steps.get((origin, target))
        if operator is None:  # nobody goes back to the middle of the room
            return False
        self._rules.execute(operator)
        self._at = node.state
        return True

    def _write(self, action: Any) -> str:
        """The text of a command; the place from which one goes is not in it."""
        names = tuple(var.name for slot, var in action.mapping.items() if slot.name != "lstart")
        key = (action.name, names)
        if key not in self._words:
            action.command_template = self._derive(action.command_template, action.mapping)
            self._words[key] = action.format_command({one: info.name for one, info in self._infos.items()})
        return self._words[key]

    def _answer(self, operator: _Found, after: State) -> str:
        """The answer to a command, which depends on the facts about what stands in it."""
        action = operator.action
        names = {var.name for slot, var in action.mapping.items() if slot.name != "lstart"}
        about = names if action.name == "inventory" else {one for one in names if self._rules.name2type[one] != "agent"}
        key = (action.name, *sorted(names), frozenset(fact for fact in after if not about.isdisjoint(fact[1:])))
        if key not in self._answers:
            self._answers[key] = self._derive(action.feedback_rule, action.mapping)
        return self._answers[key]

    def _derive(self, rule: str, mapping: Any) -> str:
        variables = {slot.name: self._infos[var.name] for slot, var in mapping.items()}
        context = {"state": self._rules, "facts": [], "variables": variables, "mapping": mapping}
        return str(self._grammar.derive(rule, {**context, "entity_infos": self._infos}))
