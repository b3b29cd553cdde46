"""What the reference coding agents share: they look at the files, keep notes, and write the change that an issue wants.

The programs run in the work folder, with the files of the task and of the log of continuous integration as arguments.
They import the standard library and this file alone. A *note* says how the project does something, as `layout: lib`.
"""

import hashlib
import json
import re
import subprocess  # nosec B404
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

MEMORY = Path("MEMORY.md")
DOCUMENTED = ("helper", "layout", "fragment", "register", "check", "setting")
"""What CONTRIBUTING.md says; the rest is found in the code that was merged last."""
PRACTISED = ("rounding", "error", "unit", "order")

_DOCUMENT = Path("CONTRIBUTING.md")
_SAYINGS = {
    "layout": r"package stands in `(\w+)/",
    "register": r"register in `\S*?(\w+)\.txt`",
    "helper": r"result with `(\w+)` from `\w+\.(\w+)`",
    "setting": r"section `(\w+)` of",
    "fragment": r"changelog fragment, .*?`(\w+)/\S+?\.(\w+)`",
    "check": r"Run `python (\w+)\.py`",
}
_TERMS = re.compile(r"([\d.]+) % of the amount and ([\d.]+) for each day after the first (\d+)")
_GUARDS = {
    "days": "A negative number of days is refused.",
    "zero": "An amount of zero costs nothing.",
    "comma": "An amount may be a text with commas, as '1,250.00'.",
}


def play(begin, refused):
    """Work on an issue: one attempt.

    Args:
        begin: returns the notes for the first attempt.
        refused: returns the notes for the next one, from those before, the log, and the number of refusals; `None`
            to submit the change as it is.
    """
    task, log = (Path(name).read_text(encoding="utf-8") for name in sys.argv[1:3])
    scratch = Path(tempfile.gettempdir(), "attempts.json")  # lasts as long as the issue
    attempts = json.loads(scratch.read_text(encoding="utf-8")) if log else []
    notes = refused(attempts[-1], log, len(attempts)) if log else begin()
    scratch.write_text(json.dumps([*attempts, notes or attempts[-1]]), encoding="utf-8")
    if notes is not None:
        for words in (["checkout", "--quiet", "--", "."], ["clean", "--quiet", "-fd"]):
            subprocess.run(["git", *words], check=True)  # nosec B603 B607
        solve(task, notes)


def package():
    """The name of the package."""
    return re.search(r'name = "(\w+)"', Path("pyproject.toml").read_text(encoding="utf-8"))[1]


def find_rules():
    """The file of each rule, by its name."""
    return {path.stem: path for path in sorted(Path().glob(f"*/{package()}/*/*.py"))}


def find_newest():
    """The file of the rule that was merged last; `None` if it is not there."""
    rules = find_rules()
    for line in Path("HISTORY.md").read_text(encoding="utf-8").splitlines()[1:]:
        words = f" {line.rpartition(' (')[0]} "
        titled = [path for stem, path in rules.items() if f" {stem.replace('_', ' ')} " in words]
        if titled:
            return titled[-1]
    return None


def look(names=(*DOCUMENTED, *PRACTISED)):
    """Notes from the files as they are: the documents, and the change that was merged last."""
    notes = {}
    text = _DOCUMENT.read_text(encoding="utf-8")
    for name in names:
        if name in DOCUMENTED and (found := re.search(_SAYINGS[name], text)):
            notes[name] = " in ".join(found.groups())
    path = find_newest()
    code = path.read_text(encoding="utf-8") if path else ""
    practised = {
        "rounding": re.search(r"\.rounding import (\w+)", code),
        "error": re.search(r"\.errors import (\w+)", code),
        "order": re.search(r"def \w+\((\w+), ", code),
    }
    notes |= {name: found[1].lower() for name, found in practised.items() if found and name in names}
    if "unit" in names and code:
        notes["unit"] = "cents" if "* 100" in code else "units"
    return notes


def source(name):
    """The file from which a note is read."""
    return _DOCUMENT if name in DOCUMENTED else find_newest()


def digest(path):
    """The beginning of the hash of a file, empty if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path and path.is_file() else ""


def remember():
    """The notes in memory; of several about the same thing the last one counts."""
    text = MEMORY.read_text(encoding="utf-8") if MEMORY.exists() else ""
    return dict(re.findall(r"^- (\w+): ([\w ]+?)(?: \(.*\))?$", text, re.MULTILINE))


def cited():
    """The hash that each note in memory rests on."""
    text = MEMORY.read_text(encoding="utf-8") if MEMORY.exists() else ""
    return dict(re.findall(r"^- (\w+): .*@(\w+)\)$", text, re.MULTILINE))


def keep(notes, cites=False):
    """Write memory anew, with the file and the hash that each note rests on if it cites."""
    lines = []
    for name, note in notes.items():
        path = source(name) if cites else None
        lines.append(f"- {name}: {note}" + (f" ({path}@{digest(path)})" if path else ""))
    MEMORY.write_text("# How this project works\n" + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def blamed(log):
    """The notes that a refusal can be about."""
    signs = {
        "fragment": ("fragment",),
        "check": ("Checked", "check command"),
        "register": ("regist", "list_rules"),
        "setting": ("KeyError", "section", "setting"),
        "helper": ("ImportError", "cannot import", "No module", "ModuleNotFound", "entered", "enters"),
        "layout": ("No module", "ModuleNotFound", "No such file", "stands in"),
        "error": ("raise", "exception"),
        "rounding": ("expected",),
        "unit": ("expected",),
        "order": ("expected", "argument"),
    }
    return [name for name, words in signs.items() if any(word in log for word in words)]


def adapt(notes, log):
    """Notes that fit a refusal: documented things as the documents say now, practised ones by trying another one."""
    names = blamed(log)
    seen = look(names)
    if any(seen[name] != notes[name] for name in seen):
        return notes | seen
    if "error" in names:
        return notes | {"error": _next(re.findall(r"class (\w+)", _module("errors").lower()), notes["error"])}
    wrong = re.findall(r"(\w+)\((.*)\): expected (-?[\d.]+), got (-?[\d.]+)", log)
    figures = [(Decimal(expected), Decimal(got)) for _, _, expected, got in wrong]
    if any(got and expected / got in (100, Decimal("0.01")) for expected, got in figures):
        return notes | {"unit": _next(["cents", "units"], notes["unit"])}
    if any(abs(expected - got) <= 1 for expected, got in figures):
        modes = dict(re.findall(r"def (\w+).*?rounding=\"(\w+)\"", _module("rounding"), re.DOTALL))
        fitting = [word for word, mode in modes.items() if all(_fits(mode, *one) for one in wrong)]
        return notes | {"rounding": _next([one for one in fitting if one != notes["rounding"]] or list(modes), "")}
    return notes | {"order": _next(["amount", "days"], notes["order"])}


def _fits(mode, name, arguments, expected, got):
    """Whether a way of rounding gives what was expected of a call; also where something else hides it."""
    numbers = sorted(map(Decimal, re.findall(r"-?[\d.]+", arguments)), reverse=True)
    percent, daily, free = map(Decimal, _read_rule(name)["terms"])
    exact = numbers[0] * percent / 100 + daily * max(numbers[-1] - free, 0)
    scale = 100 if "." not in got else 1
    is_plain = abs(exact * scale - Decimal(got)) < scale
    return not is_plain or exact.quantize(Decimal("0.01"), mode) * scale == Decimal(expected)


def _module(name):
    return next(iter(sorted(Path().glob(f"*/{package()}/{name}.py")))).read_text(encoding="utf-8")


def _next(values, value):
    return values[(values.index(value) + 1) % len(values)] if value in values else values[0]


def solve(task, notes):
    """Write the change that a task wants, as the notes say; nothing if the task cannot be read."""
    names = re.findall(r"`([a-z]+_[a-z]+)`", task)
    capped = re.search(r"`(\w+)_cap`\D*(\d+)", task) or re.search(r"`(\w+)_cap`.*?(\d+)", task, re.DOTALL)
    rules = find_rules()
    known = [name for name in names if name in rules]
    new = [name for name in names if name not in rules]
    charges = re.search(r"Charges for (.*),", Path("README.md").read_text(encoding="utf-8"))[1]
    areas = charges.replace(" and", ",").split(", ")
    named = [area for area in re.findall(r"\w+", task) if area in areas]
    terms = _TERMS.search(task)
    rule = _read_rule(known[0]) if known else {"guards": [], "cap": None}
    old = known[0] if known else None
    rule["name"] = new[0] if new and not capped else old
    if terms:
        rule["terms"] = terms.groups()
    rule["guards"] += [key for key, text in _GUARDS.items() if text in task and key not in rule["guards"]]
    if capped:
        rule["cap"] = capped[2]
    if known and not new and not terms and not capped and named:
        rule["area"] = next(area for area in named if area != rule["area"])
    elif not known:
        rule["area"] = named[0]
    _write_rule(rule, old, notes)
    number = re.search(r"#(\d+)", task)[1]
    folder, suffix = notes["fragment"].split(" in ")
    words = rule["name"].replace("_", " ")
    _write(Path(folder, f"{number}.{suffix}"), f"Work on the {words}.\n\nChecked: python {notes['check']}.py\n")


def _read_rule(name):
    """What a rule does, by its file."""
    path = find_rules()[name]
    code = path.read_text(encoding="utf-8")
    guards = [key for key, text in _GUARDS.items() if text in code]
    cap = re.search(rf'"{name}_cap": "(\d+)"', Path("settings.json").read_text(encoding="utf-8"))
    return {"terms": _TERMS.search(code).groups(), "area": path.parent.name, "guards": guards, "cap": cap and cap[1]}


def _write_rule(rule, old, notes):
    """Write the file of a rule, and name it in the register and the settings."""
    name, (percent, daily, free) = rule["name"], rule["terms"]
    helper, module = notes["helper"].split(" in ")
    error, rounding = notes["error"].title(), notes["rounding"]
    arguments = "days, amount" if notes["order"] == "days" else "amount, days"
    amount = 'str(amount).replace(",", "")' if "comma" in rule["guards"] else "amount"
    refused = "amount < 0 or days < 0" if "days" in rule["guards"] else "amount < 0"
    charge = f'amount * Decimal("{Decimal(percent) / 100}") + Decimal("{daily}") * max(days - {free}, 0)'
    lines = [
        f'"""Charge {percent} % of the amount and {daily} for each day after the first {free}.',
        *(_GUARDS[guard] for guard in _GUARDS if guard in rule["guards"]),
        '"""',
        f"amount = Decimal({amount})",
        f"if {refused}:",
        f'    raise {error}("{name} refuses a negative value")',
        f'settings = section("{notes["setting"]}")',
        f'result = max({charge}, Decimal(settings["minimum"]))',
        *(['if amount == 0:\n        result = Decimal("0")'] if "zero" in rule["guards"] else []),
        *([f'result = min(result, Decimal(settings["{name}_cap"]))'] if rule["cap"] else []),
        f"result = int({rounding}(result) * 100)" if notes["unit"] == "cents" else f"result = {rounding}(result)",
        f'return {helper}("{name}", result)',
    ]
    imports = {"errors": error, module: helper, "rounding": rounding, "settings": "section"}
    code = f'"""The {name.replace("_", " ")}."""\n\nfrom decimal import Decimal\n\n'
    code += "".join(f"from {package()}.{one} import {what}\n" for one, what in imports.items())
    code += f"\n\ndef {name}({arguments}):\n" + "".join(f"    {line}\n" for line in lines)
    if old:
        find_rules()[old].unlink()
    home = Path(notes["layout"], package())
    _write(home / rule["area"] / f"{name}.py", code)
    register = home / f"{notes['register']}.txt"
    entries = dict(
        re.findall(r"^(\w+) = (\w+)$", register.read_text(encoding="utf-8") if register.exists() else "", re.M)
    )
    entries.pop(old, None)
    _write(register, "".join(f"{one} = {area}\n" for one, area in sorted((entries | {name: rule["area"]}).items())))
    settings = json.loads(Path("settings.json").read_text(encoding="utf-8"))
    section = settings.setdefault(notes["setting"], {})
    section.pop(f"{old}_cap", None)
    section |= {f"{name}_cap": rule["cap"]} if rule["cap"] else {}
    _write(Path("settings.json"), json.dumps(settings, indent=2) + "\n")


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
