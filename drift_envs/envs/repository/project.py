"""The files of a project as a pure function of its conventions, its rules and what was merged."""

from __future__ import annotations

import decimal
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from drift_envs.envs.repository.conventions import (
    DEFAULT_STYLE,
    ERRORS,
    HELPER_MODULES,
    ROUNDINGS,
    SUFFIXES,
    Conventions,
    Style,
    find_word,
    permute,
)

PACKAGES = ("ledger", "tariff", "quayside", "lantern", "millrace", "orchard", "porterage", "warehouse")
AREAS = ("freight", "office", "yard", "dock", "counter", "fleet")
NAMES = (
    "parking", "transfer", "storage", "courier", "customs", "handling", "booking", "weekend", "express", "loading",
    "packing", "printing", "repair", "survey", "towing", "pilot", "cleaning", "insurance", "escort", "crane", "night",
    "return", "weighing", "escrow", "archive", "pallet", "mooring", "scanning", "sorting", "waste",
)  # fmt: skip
SUFFIX_OF_NAMES = ("fee", "charge", "levy", "toll")

AREAS_OF_A_PROJECT = 3
FIRST_RULES = 5
MOST_RULES = 6
"""A project with more rules drops the one that was untouched the longest."""
RELEASE = 3
"""Fragments of so many merged changes are collected in the changelog."""
SHOWN_CHANGES = 20
"""How many merged changes the log shows."""

_STREAM = 0x4E91

GUARDS = {
    "days": "A negative number of days is refused.",
    "zero": "An amount of zero costs nothing.",
    "comma": "An amount may be a text with commas, as '1,250.00'.",
}
"""What rules do only after a bug was mended."""


class ChargeCall(NamedTuple):
    """What a rule is called with.

    Args:
        amount: in units, or a text with commas.
        days: their number.
    """

    amount: Decimal | str
    days: int


@dataclass(frozen=True)
class ChargeRule:
    """A rule for a charge: a share of an amount, and a price for each day after the first ones.

    Args:
        name: of the function.
        area: the folder in the package.
        percent: of the amount.
        daily: for each day after the free ones.
        free: the number of days that cost nothing.
        guards: keys of `GUARDS`.
        cap: the highest charge, a setting; `None` without one.
        style: the implicit conventions with which the function was written.
    """

    name: str
    area: str
    percent: Decimal
    daily: Decimal
    free: int
    guards: tuple[str, ...] = ()
    cap: Decimal | None = None
    style: Style = DEFAULT_STYLE

    @property
    def words(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def terms(self) -> str:
        """The charge in words."""
        return f"{self.percent} % of the amount and {self.daily} for each day after the first {self.free}"

    def charge(self, call: ChargeCall, project: int, minimum: Decimal, cap: Decimal | None) -> Decimal | None:
        """What a call should return; `None` if it should be refused.

        Args:
            call: the call.
            project: the number of the project.
            minimum: the least charge.
            cap: the highest charge, if the rule has one.
        """
        amount, days = Decimal(str(call.amount).replace(",", "")), call.days
        if amount < 0 or ("days" in self.guards and days < 0):
            return None
        charge = Decimal(0)
        if amount or "zero" not in self.guards:
            charge = max(amount * self.percent / 100 + self.daily * max(days - self.free, 0), minimum)
        if self.cap is not None and cap is not None:
            charge = min(charge, cap)
        roundings, swaps_units, _ = permute(project)
        rounded = charge.quantize(Decimal("0.01"), getattr(decimal, ROUNDINGS[roundings[self.style.rounding]]))
        return rounded * 100 if bool(self.style.unit) != swaps_units else rounded


class MergedChange(NamedTuple):
    """A change in the log.

    Args:
        number: of the issue in the log, as in `#12`.
        title: what it did.
        area: where.
    """

    number: int
    title: str
    area: str


@dataclass(frozen=True)
class Project:
    """A project as it is at a moment.

    Args:
        number: its number, from which it is drawn.
        conventions: those in force.
        documented: those that the documents name.
        rules: the rules, the one that was touched last at the end.
        log: the merged changes, the latest at the end.
        released: how many of them the changelog has; the others have fragments.

    Example:
        >>> project = start_project(7, Conventions())
        >>> sorted(project.files())[:3], len(project.files())
        (['CHANGELOG.md', 'CONTRIBUTING.md', 'HISTORY.md'], 21)
    """

    number: int
    conventions: Conventions
    documented: Conventions
    rules: tuple[ChargeRule, ...]
    log: tuple[MergedChange, ...]
    released: int = FIRST_RULES - 1

    @property
    def package(self) -> str:
        """The name of the package."""
        return PACKAGES[self.number % len(PACKAGES)]

    @property
    def areas(self) -> tuple[str, ...]:
        """The folders of rules."""
        return _draw_base(self.number)[0]

    @property
    def minimum(self) -> Decimal:
        """The least charge, a setting."""
        return _draw_base(self.number)[1]

    @property
    def next_number(self) -> int:
        """The number of the next change in the log."""
        return self.log[-1].number + 1

    def find(self, name: str) -> ChargeRule | None:
        """The rule of a name; `None` if there is none."""
        return next((rule for rule in self.rules if rule.name == name), None)

    def word(self, name: str) -> str:
        """The present word of a convention, one of `NAMED`."""
        return self.conventions.word(self.number, name)

    def merge(self, before: str | None, rule: ChargeRule, title: str) -> Project:
        """The project after a change.

        Args:
            before: the name of the rule that the change replaces; `None` for a new one.
            rule: the rule after the change.
            title: what the change did.
        """
        rules = (*(one for one in self.rules if one.name != before), rule)
        change = MergedChange(self.next_number, title, rule.area)
        return replace(self, rules=rules, log=(*self.log, change))

    def tidy(self) -> Project:
        """The project after what maintainers do now and then: a release, and dropping a rule.

        A release collects all fragments but the last one in the changelog.
        """
        released = len(self.log) - 1 if len(self.log) - self.released > RELEASE else self.released
        return replace(self, rules=self.rules[-MOST_RULES:], released=released)

    @lru_cache(maxsize=256)  # noqa: B019 - frozen and small; equal projects have equal files
    def _write(self) -> tuple[tuple[str, str], ...]:
        return tuple(sorted(_Writer(self).write().items()))

    def files(self) -> dict[str, str]:
        """All files: text by path."""
        return dict(self._write())

    def rule_path(self, rule: ChargeRule) -> str:
        """The path of a rule's file."""
        return f"{self.word('layout')}/{self.package}/{rule.area}/{rule.name}.py"

    def fragment_path(self, number: int | str) -> str:
        """The path of the fragment of a change.

        Args:
            number: of the change in the log.
        """
        return f"{self.word('fragment')}/{number}.{SUFFIXES[self.conventions.fragment % len(SUFFIXES)]}"

    @property
    def register_path(self) -> str:
        """The path of the register."""
        return f"{self.word('layout')}/{self.package}/{self.word('register')}.txt"

    @property
    def check_command(self) -> str:
        """The command of the checks."""
        return f"python {self.word('check_command')}.py"


@lru_cache(maxsize=256)
def _draw_base(number: int) -> tuple[tuple[str, ...], Decimal, tuple[ChargeRule, ...]]:
    """Areas, least charge and first rules of a project."""
    rng = np.random.default_rng([_STREAM, number])
    areas = tuple(str(one) for one in rng.permutation(AREAS)[:AREAS_OF_A_PROJECT])
    minimum = Decimal(int(rng.integers(2, 9))) / 4
    rules = tuple(
        draw_rule(f"{name}_{SUFFIX_OF_NAMES[int(rng.integers(len(SUFFIX_OF_NAMES)))]}", areas[place % 3], rng)
        for place, name in enumerate(str(one) for one in rng.permutation(NAMES)[:FIRST_RULES])
    )
    return areas, minimum.quantize(Decimal("0.01")), rules


def draw_rule(name: str, area: str, rng: np.random.Generator) -> ChargeRule:
    """Draw the terms of a rule.

    Args:
        name: of the function.
        area: the folder.
        rng: the generator.
    """
    percent = Decimal(int(rng.integers(3, 60))) / 4
    percent = percent.quantize(Decimal(1)) if percent == percent.to_integral_value() else percent.normalize()
    daily = Decimal(int(rng.integers(2, 40))) / 20
    return ChargeRule(name, area, percent, daily.quantize(Decimal("0.01")), int(rng.integers(2, 8)))


def start_project(number: int, conventions: Conventions) -> Project:
    """A project before any issue of a lifetime.

    Args:
        number: its number.
        conventions: those in force, with which everything was written.
    """
    _, _, rules = _draw_base(number)
    rules = tuple(replace(rule, style=conventions.style) for rule in rules)
    log = tuple(MergedChange(place, f"Add the {rule.words}", rule.area) for place, rule in enumerate(rules, 1))
    return Project(number, conventions, conventions, rules, log)


class _Writer:
    """Writes the files of a project."""

    def __init__(self, project: Project) -> None:
        self.project, self.package = project, project.package
        self.home = f"{project.word('layout')}/{self.package}"

    def write(self) -> dict[str, str]:
        """All files."""
        project, layout = self.project, self.project.word("layout")
        released, rules = project.released, sorted(project.rules, key=lambda rule: rule.name)
        changes = project.log[: -SHOWN_CHANGES - 1 : -1]
        settings = {"minimum": str(project.minimum)}
        settings |= {f"{rule.name}_cap": str(rule.cap) for rule in rules if rule.cap is not None}
        module = _module(project.conventions)
        files = {
            "README.md": self._write_readme(rules),
            "CONTRIBUTING.md": self._write_contributing(),
            "HISTORY.md": "# Merged changes, newest first\n"
            + "".join(f"- #{one.number} {one.title} ({one.area})\n" for one in changes),
            "CHANGELOG.md": "# Changelog\n\n" + "".join(f"- {one.title}.\n" for one in project.log[:released][::-1]),
            "pyproject.toml": _PYPROJECT.format(package=self.package, minor=released // RELEASE, layout=layout),
            "settings.json": json.dumps({project.word("setting"): settings}, indent=2) + "\n",
            f"{project.word('check_command')}.py": _CHECKS.format(layout=layout),
            f"{self.home}/__init__.py": _INIT.format(
                package=self.package, module=module, register=project.word("register")
            ),
            f"{self.home}/errors.py": self._write_errors(),
            f"{self.home}/rounding.py": self._write_rounding(),
            f"{self.home}/settings.py": _SETTINGS,
            project.register_path: "".join(f"{one.name} = {one.area}\n" for one in rules),
            "tests/test_register.py": _TEST_REGISTER.format(package=self.package),
            "tests/test_settings.py": _TEST_SETTINGS.format(package=self.package),
        }
        files |= self._write_helper()
        files |= {project.fragment_path(one.number): self.write_fragment(one.title) for one in project.log[released:]}
        return files | {project.rule_path(rule): self.write_rule(rule) for rule in project.rules}

    def _write_readme(self, rules: Sequence[ChargeRule]) -> str:
        areas, listed = self.project.areas, "".join(f"- `{rule.name}`: {rule.terms}\n" for rule in rules)
        return (
            f"# {self.package}\n\nCharges for {', '.join(areas[:-1])} and {areas[-1]}, as functions.\n"
            f"How to change something stands in CONTRIBUTING.md.\n\n## Rules\n{listed}"
        )

    def _write_contributing(self) -> str:
        project = replace(self.project, conventions=self.project.documented)
        helper = project.word("helper")
        fragment = project.fragment_path("<issue>")
        return f"""# How to contribute
- The package stands in `{project.word("layout")}/{self.package}/`. Each rule is a function in a file of its own, \
`<area>/<name>.py`, named like the function.
- Rules register in `{project.register_path}`: a line `<name> = <area>`.
- A rule takes the amount, in units, and the number of days. It enters its result with `{helper}` from \
`{self.package}.{_module(project.conventions)}`: `return {helper}("<name>", result)`.
- Settings of rules stand in the section `{project.word("setting")}` of `settings.json`; `minimum` is the least charge.
- Each change has a changelog fragment, named by the number of its issue: `{fragment}`.
- Run `{project.check_command}`, and say so in the last line of the fragment: `Checked: {project.check_command}`.
- Rounding, exceptions, the unit of results and the order of arguments are as reviewers accepted them last: see the \
changes in HISTORY.md. A change brings the rule that it touches to the present practice.
"""

    def _write_errors(self) -> str:
        words = sorted(find_word(self.project.number, "error", version) for version in range(ERRORS))
        classes = "".join(f'\n\nclass {one.title()}(ValueError):\n    """A value is refused."""\n' for one in words)
        return f'"""Exceptions."""\n{classes}'

    def _write_rounding(self) -> str:
        project, roundings = self.project, permute(self.project.number)[0]
        named = sorted(
            (find_word(project.number, "rounding", version), ROUNDINGS[place])
            for version, place in enumerate(roundings)
        )
        functions = "".join(
            f'\n\ndef {word}(value):\n    """The value in whole cents."""\n'
            f'    return value.quantize(CENT, rounding="{rounding}")\n'
            for word, rounding in named
        )
        return f'"""Rounding to cents."""\n\nfrom decimal import Decimal\n\nCENT = Decimal("0.01")\n{functions}'

    def _write_helper(self) -> dict[str, str]:
        project, now = self.project, self.project.conventions
        files = {f"{self.home}/{_module(now)}.py": _HELPER.format(helper=project.word("helper"))}
        if now.old_helper == "kept" and now.helper:
            before = replace(now, helper=now.helper - 1)
            old, new = before.word(project.number, "helper"), project.word("helper")
            files[f"{self.home}/{_module(before)}.py"] = (
                '"""What is left of an earlier release."""\n\n'
                f"from {self.package}.{_module(now)} import {new}\n\n{old} = {new}\n"
            )
        return files

    def write_fragment(self, title: str) -> str:
        """A changelog fragment."""
        return f"{title}.\n\nChecked: {self.project.check_command}\n"

    def write_rule(self, rule: ChargeRule) -> str:
        """The file of a rule, with the implicit conventions of its time and the explicit ones of today."""
        project = self.project
        _, swaps_units, swaps_order = permute(project.number)
        error = find_word(project.number, "error", rule.style.error).title()
        rounding = find_word(project.number, "rounding", rule.style.rounding)
        helper, section = project.word("helper"), project.word("setting")
        arguments = "days, amount" if bool(rule.style.order) != swaps_order else "amount, days"
        notes = "".join(f"\n    {GUARDS[guard]}" for guard in GUARDS if guard in rule.guards)
        doc = f"    Charge {rule.terms}.{notes}"
        amount = 'str(amount).replace(",", "")' if "comma" in rule.guards else "amount"
        refused = "amount < 0 or days < 0" if "days" in rule.guards else "amount < 0"
        share = rule.percent / 100
        lines = [
            f"amount = Decimal({amount})",
            f"if {refused}:",
            f'    raise {error}("{rule.name} refuses a negative value")',
            f'settings = section("{section}")',
            f'result = amount * Decimal("{share}") + Decimal("{rule.daily}") * max(days - {rule.free}, 0)',
            'result = max(result, Decimal(settings["minimum"]))',
        ]
        if "zero" in rule.guards:
            lines += ["if amount == 0:", '    result = Decimal("0")']
        if rule.cap is not None:
            lines.append(f'result = min(result, Decimal(settings["{rule.name}_cap"]))')
        whole = f"int({rounding}(result) * 100)" if bool(rule.style.unit) != swaps_units else f"{rounding}(result)"
        lines.append(f'return {helper}("{rule.name}", {whole})')
        body = "".join(f"    {line}\n" for line in lines)
        return (
            f'"""The {rule.words}."""\n\nfrom decimal import Decimal\n\n'
            f"from {self.package}.errors import {error}\n"
            f"from {self.package}.{_module(project.conventions)} import {helper}\n"
            f"from {self.package}.rounding import {rounding}\n"
            f"from {self.package}.settings import section\n\n\n"
            f'def {rule.name}({arguments}):\n    """{doc.strip()}"""\n{body}'
        )


def _module(conventions: Conventions) -> str:
    return HELPER_MODULES[conventions.helper % len(HELPER_MODULES)]


_PYPROJECT = """[project]
name = "{package}"
version = "0.{minor}"
requires-python = ">=3.9"

[tool.setuptools]
package-dir = {{"" = "{layout}"}}
"""

_CHECKS = '''"""The project's checks: all tests."""

import sys
import unittest

sys.path.insert(0, "{layout}")
unittest.main(None, argv=["checks", "discover", "-s", "tests"])
'''

_INIT = '''"""Charges as functions."""

import importlib
import os

from {package}.{module} import entries

__all__ = ["entries", "find", "list_rules"]


def list_rules():
    """The area of each registered rule."""
    with open(os.path.join(os.path.dirname(__file__), "{register}.txt"), encoding="utf-8") as lines:
        return dict(line.split()[::2] for line in lines if line.strip())


def find(name):
    """The rule of this name."""
    area = list_rules()[name]
    return getattr(importlib.import_module(f"{package}.{{area}}.{{name}}"), name)
'''

_HELPER = '''"""All results, in the order in which they were entered."""

_entries = []


def {helper}(name, result):
    """Enter the result of a rule, and return it."""
    _entries.append((name, result))
    return result


def entries():
    """What was entered."""
    return tuple(_entries)
'''

_SETTINGS = '''"""Settings of rules."""

import json
import os

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def section(name):
    """A section of the settings."""
    with open(os.path.join(ROOT, "settings.json"), encoding="utf-8") as file:
        return json.load(file)[name]
'''

_TEST_REGISTER = """import unittest

import {package}


class TestRegister(unittest.TestCase):
    def test_every_rule_is_found(self):
        for name in {package}.list_rules():
            self.assertTrue(callable({package}.find(name)), name)

    def test_results_are_entered(self):
        for name in {package}.list_rules():
            result = {package}.find(name)(100, 100)
            self.assertEqual({package}.entries()[-1], (name, result))
"""

_TEST_SETTINGS = """import json
import pathlib
import unittest


class TestSettings(unittest.TestCase):
    def test_sections_have_a_least_charge(self):
        path = pathlib.Path(__file__).parents[1] / "settings.json"
        for section in json.loads(path.read_text(encoding="utf-8")).values():
            self.assertGreater(float(section["minimum"]), 0)
"""
