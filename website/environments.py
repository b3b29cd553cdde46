"""A page for each environment, made from its registration, its class, its knobs and the schedules that name it.

* `page` - the page of an id
* `thumbnails` - the pictures of all ids, each a link to its page
* `navigation` - the pages by group, as `mkdocs.yml` names pages
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gymnasium as gym

from drift_envs.cli.listing import show_bounds
from drift_envs.knobs import Knob, thaw
from drift_envs.registration import IDS
from website.desk import show_desk
from website.pictures import DRAWN, FOLDER, describe_film
from website.schedules import KINDS, read_shipped, section

DOCS = Path(__file__).resolve().parent.parent / "docs"
GROUPS = {
    "frozen_lake": "Frozen lake",
    "mountain_car": "Mountain car",
    "house": "House",
    "tools": "Service desk",
    "facts": "Facts",
    "repository": "Repository",
    "webshop": "Shop",
    "classic_control": "Classic control",
    "mujoco": "MuJoCo",
    "minigrid": "MiniGrid",
    "miniwob": "MiniWoB++",
    "bfcl": "BFCL",
    "tau2": "tau2-bench",
    "alfworld": "ALFWorld",
}
"""Names of the folders in `drift_envs.envs`; a folder without one has that of the folder."""
SPACES = ("Action Space", "Observation Space", "Rewards", "Reward", "Starting State", "Episode End")
"""Sections of Gymnasium's and Minigrid's docstrings that a page shows."""
SECTION = re.compile(r"^(Args|Raises|Example|Examples):\n((?:(?: +.*)?(?:\n|\Z))*)", re.MULTILINE)
ARGUMENT = re.compile(r"^ {4}(\w+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


def group_title(group: str) -> str:
    """The name of a group of environments in headings."""
    return GROUPS.get(group, group.replace("_", " ").capitalize())


def navigation() -> list[dict[str, Any]]:
    """The pages by group, as `mkdocs.yml` names pages."""
    groups: dict[str, list[Any]] = {}
    for env_id, parts in IDS.items():
        about = [f"{parts.group}.md"] if (DOCS / f"{parts.group}.md").exists() else []
        groups.setdefault(parts.group, about).append({env_id: f"environments/{env_id}.md"})
    return [{group_title(group): pages} for group, pages in groups.items()]


def thumbnails() -> str:
    """The pictures of all ids, each a link to its page, as HTML."""
    lines = ['<div class="thumbnails">']
    for env_id in sorted(IDS, key=lambda name: name not in DRAWN):
        file = FOLDER / f"{env_id}.png"
        picture = f'<img src="pictures/environments/{file.name}" alt="" loading="lazy">' if env_id in DRAWN else ""
        lines.append(f'<a href="environments/{env_id}.html">{picture}<code>{env_id}</code></a>')
    return "\n".join([*lines, "</div>", ""])


def page(env_id: str) -> str:
    """The page of an id, in Markdown.

    Raises:
        MissingDependencyError: if the extra of an environment whose class cannot be read without it is missing.
    """
    return "\n".join(_lines(env_id)) + "\n"


def _lines(env_id: str) -> Iterator[str]:
    parts = IDS[env_id]
    env_class = parts.env_class
    first, _, rest = inspect.cleandoc(env_class.__doc__ or "").partition("\n\n")
    yield from (f"# {env_id}", "", first, "")
    if (FOLDER / f"{env_id}.webp").exists():
        yield f"![{env_id} through a drift](../pictures/environments/{env_id}.webp){{ .film }}"
        yield ""
        yield describe_film(env_id)
        yield ""
    if parts.extra is not None:
        yield from ("```sh", f'pip install ".[{parts.extra}]"', "```", "")
    yield from ("```python", "import gymnasium as gym", "import drift_envs", "")
    yield from (f'env = gym.make("{env_id}", schedule="{parts.schedule}")', "```", "")
    yield from ("| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in _facts(env_id).items()), "")
    about = DOCS / f"{parts.group}.md"
    if about.exists():
        yield from (f"[{group_title(parts.group)}](../{about.name}) has the rules, agents and results.", "")
    yield re.sub(
        r"^Knobs(?:, with defaults and bounds)?: .*(?:\n\S.*)*\n?", "", SECTION.sub("", rest), flags=re.MULTILINE
    ).strip()
    yield ""
    yield from _inherited(env_class)
    yield from ("## Knobs", "", *show_knobs(env_id), "")
    yield "Every schedule may also drive the [effects](../effects.md) on observations, actions and rewards."
    yield ""
    if env_id == "DriftTools-v0":
        yield from show_desk()
    yield from _arguments(env_class, rest, parts.arguments)
    yield from _schedules(env_id)


def _facts(env_id: str) -> dict[str, str]:
    parts = IDS[env_id]
    if parts.text_mode is None:
        drifting, base = _spaces(env_id), _spaces(env_id, schedule=None)
        spaces = {
            name: f"`{own}`" + ("" if own == plain else f"; `{plain}` with `schedule=None`")
            for name, own, plain in zip(("action space", "observation space"), drifting, base, strict=True)
        }
    else:
        spaces = {"action space": "`Text`", "observation space": "`Text`"}
    return {
        **spaces,
        "episode": f"at most {parts.limit} steps",
        "default schedule": f"`{parts.schedule}`",
        "text form": "`text=True`" if parts.text or parts.text_mode else "none",
        "[oracle](../environments.md#the-oracle)": _oracle(env_id),
        "vector form": "[native](../vector.md)" if parts.vector else "by Gymnasium's `SyncVectorEnv`",
        "JAX form": "[yes](../functional.md)" if parts.functional else "none",
        "played by keyboard": f"`drift-envs play {env_id}`" if parts.controls else "no",
    }


def _spaces(env_id: str, **options: None) -> tuple[str, ...]:
    """The spaces of actions and observations; with the default schedule unless options say otherwise."""
    env = gym.make(env_id, **options)
    shown = (re.sub(r"\(<function [^>]*>[^)]*\)", "", str(one)) for one in (env.action_space, env.observation_space))
    env.close()
    return tuple(shown)


def _oracle(env_id: str) -> str:
    parts = IDS[env_id]
    if parts.oracle is None:
        return "none"
    return "optimum and responses of every tick" if parts.knows_optimum else "responses of every tick, no optimum"


def _inherited(env_class: type) -> Iterator[str]:
    """What the docstring of the class that this one extends says of spaces and rewards."""
    for base in env_class.__mro__[1:]:
        text = inspect.cleandoc(base.__doc__ or "")
        found = {
            name: match[1].strip()
            for name in SPACES
            if (match := re.search(rf"^#+ {name}:?\n(.*?)(?=^#+ |\Z)", text, re.MULTILINE | re.DOTALL))
        }
        if not base.__module__.startswith("drift_envs") and found:
            package = base.__module__.partition(".")[0].capitalize()
            yield from ("## Spaces and rewards", "", f"From the documentation of {package}'s `{base.__name__}`.", "")
            for name, body in found.items():
                yield from (f"### {name}", "", _plain(body), "")
            return


def _plain(text: str) -> str:
    """A section without its time limit, lists apart from the text, and formulas of TeX as code."""
    text = "\n".join(line for line in text.splitlines() if "Truncation" not in line)
    text = re.sub(r"^([^\n|*\d-][^\n]*)\n(?=[-*] |\d\. )", r"\1\n\n", text, flags=re.MULTILINE)
    text = re.sub(r"^```\{figure\}.*?^```\n?", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"\\(?:times|cdot)", "*", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1) / (\2)", text)
    text = re.sub(r"\\(?:text|mathrm)\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\([a-zA-Z]+|[_|])", r"\1", text)
    return re.sub(r"\$+([^$\n]+)\$+", lambda found: f"`{found[1].strip()}`", text)


def show_knobs(env_id: str) -> list[str]:
    """The table of an id's knobs: name, default, bounds and meaning."""
    return [
        "| knob | default | bounds | meaning |",
        "|---|---|---|---|",
        *(
            f"| `{knob.name}` | {_show(thaw(knob.default))} | {_show_bounds(knob)} | {knob.doc} |"
            for knob in IDS[env_id].knob_table.knobs
        ),
    ]


def _show_bounds(knob: Knob) -> str:
    return show_bounds(knob) if knob.is_numeric or not knob.bounds else _show(list(knob.bounds))


def _show(value: Any) -> str:
    if isinstance(value, list) and value:
        return ", ".join(f"`{item}`" for item in value)
    return f"`{value}`" if isinstance(value, str) else f"`{json.dumps(value)}`"


def _arguments(env_class: type, text: str, sets: Mapping[str, str | None]) -> Iterator[str]:
    """The arguments of the class that `gym.make` takes."""
    found = next((match[2] for match in SECTION.finditer(text) if match[1] == "Args"), "")
    meanings = {name: " ".join(words.split()) for name, words in ARGUMENT.findall(found)}
    defaults = {name: one.default for name, one in inspect.signature(env_class).parameters.items()}
    yield from ("## Arguments", "", "Beside those of [every environment](../environments.md):", "")
    yield from ("| argument | default | meaning |", "|---|---|---|")
    for name, drives in sets.items():
        default = defaults.get(name, inspect.Parameter.empty)
        shown = "" if default is inspect.Parameter.empty else f"`{default!r}`"
        also = (
            ""
            if drives is None
            else f" A schedule sets the same by {'`tasks`' if drives == 'tasks' else f'the knob `{drives}`'}."
        )
        yield f"| `{name}` | {shown} | {_sentence(meanings.get(name, ''))}{also} |"
    yield ""


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".replace("|", "\\|")


def _schedules(env_id: str) -> Iterator[str]:
    own = [one for one in read_shipped() if one.env_id == env_id]
    yield from ("## Schedules", "")
    if not own:
        folder = IDS[env_id].schedule.partition("/")[0]
        other = next(one.env_id for one in read_shipped() if one.name.startswith(f"{folder}/"))
        yield f"Those of [{other}]({other}.md#schedules) fit this environment too."
        return
    yield "By kind, with the values of the knobs over time (seed 0)."
    yield ""
    for kind in KINDS:
        for one in own:
            if one.kind == kind:
                yield from section(one)
