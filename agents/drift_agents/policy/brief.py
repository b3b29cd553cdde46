"""The format `brief`: the facts of `ranked` in a third of its tokens.

Instead of sentences about each outcome it has marks (*old* for what was last seen before memory was contradicted), one
line for all ends of a score in other states, and lists that name what actions have in common once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from os.path import commonprefix

from drift_agents.policy.ranked import FactsRenderer, score_ahead
from drift_agents.prompt.view import Recollection

BRIEF = "brief"
LISTED = 4
"""The number of untried actions up to which they are listed."""
MOVES = 3
"""How many of the newest steps of the episode are shown."""
LENGTH = 160
"""Characters of the ends that are shown, the newest first."""


class BriefRenderer(FactsRenderer):
    """The messages of the format `brief`."""

    once, many, old = "Last at", "Seen {n:g} times, last at", "old"

    def _fields(self) -> dict[str, str]:
        view = self.view
        fields = {**super()._fields(), "rules": self.template.fill("rules", {})}
        actions = fold_alternatives(view.actions)
        notation = ", {a | b} is a or b" if "{" in actions else ""
        return {**fields, "actions": actions, "notation": notation, **self.facts.brief_fields(view)}

    def _episode(self) -> str:
        moves = [self.facts.brief_move(one) for one in self.view.moves[-MOVES:]]
        return self._list("episode", [{"move": move} for move in moves])

    def _list(self, section: str, entries: Sequence[Mapping[str, str]]) -> str:
        """A section with its records, or an empty text."""
        lines = [self.template.fill(f"{section} record", entry) for entry in entries]
        return self.template.fill(section, {"records": "\n".join(lines)}) if lines else ""

    def _elsewhere(self) -> str:
        """A line for each score, old ends on their own; of equal ends the one that was seen last."""
        newest: dict[tuple[float, str], int] = {}
        for item in self._ends():
            end = (item.outcome.score, self.facts.brief_end(item))
            newest[end] = max(newest.get(end, -1), item.last)
        lines: dict[tuple[bool, float], list[str]] = {}
        room = LENGTH
        for (score, words), last in sorted(newest.items(), key=lambda end: -end[1]):
            room -= len(words)
            if room >= 0 or not lines:
                lines.setdefault((self._is_old(last), score), []).append(f"{words} at {last}")
        return self._list(
            "elsewhere",
            [
                {"old": "old, " * old, "score": f"{score:g}", "ends": "; ".join(ends)}
                for (old, score), ends in lines.items()
            ],
        )

    def _ranked(self) -> Sequence[Recollection]:
        """Best first; outcomes that read the same are one."""
        merged: dict[tuple[str, str], Recollection] = {}
        for item in super()._ranked():
            known = merged.setdefault((item.action, self._outcome(item)), item)
            if known is not item:
                n, last, verified = known.n + item.n, max(known.last, item.last), known.verified or item.verified
                weight = (known.support + item.support) / n
                known = known._replace(n=n, last=last, verified=verified, weight=weight)
                merged[item.action, self._outcome(item)] = known
        return list(merged.values())

    def _outcome(self, item: Recollection) -> str:
        if item.outcome.ended:
            return f"{self.facts.brief_outcome(item)}: ended with score {item.outcome.score:g}"
        return "nothing changed" if item.outcome.state == item.state else self.facts.brief_outcome(item)

    def _estimate(self, item: Recollection) -> str:
        return super()._estimate(item) if score_ahead(item) else ""

    def _untried(self) -> str:
        known = {item.action for item in self.view.here}
        untried = [action for action in self.view.actions if action not in known]
        if not known or not untried:
            return ""
        words = ", ".join(untried) if len(untried) <= LISTED else "all other actions"
        return self.template.fill("untried", {"untried": words})

    def _visits(self) -> str:
        words = ", ".join(f"{action}: {count} time(s)" for action, count in self.view.visits or ())
        return self.template.fill("visits", {"visits": words}) if words else ""

    def _name(self, action: str) -> str:
        return action


BAR = " | "
_HEAD = re.compile(r"[^ \[]*[ \[]?")
_TAIL = "]"
_NUMBER = re.compile(r"0|[1-9]\d*")
_RANGE = re.compile(rf"({_NUMBER.pattern})-({_NUMBER.pattern})")
_MARK = re.compile(rf"[{{|}}]|^$|(?:^|[ \[]){_RANGE.pattern}\]*$")
"""What a text has that cannot be folded, since it would read as a part of the short form."""


def fold_alternatives(texts: Sequence[str]) -> str:
    """Write what consecutive texts have in common at their beginning once; the order stays.

    Args:
        texts: not empty; where one of them has a brace or a bar, or ends with a range, none is folded.

    Example:
        >>> fold_alternatives(["go to bed 1", "go to shelf 1", "go to shelf 2", "go to shelf 3", "look"])
        'go to {bed 1 | shelf {1-3}} | look'
        >>> fold_alternatives(["click[red]", "click[light blue]"])
        'click[{red | light blue}]'
    """
    return BAR.join(texts if any(map(_MARK.search, texts)) else _fold(texts))


def _fold(texts: Sequence[str]) -> Iterator[str]:
    for _, found in groupby(texts, key=_head):
        group = list(found)
        shared = commonprefix(group)  # noqa: RUF071 - texts, no paths
        prefix = shared[: max(shared.rfind(" "), shared.rfind("[")) + 1]
        tail = _TAIL if prefix.endswith("[") and all(text.endswith(_TAIL) for text in group) else ""
        rests = [text[len(prefix) : len(text) - len(tail)] for text in group]
        if len(group) == 1 or not prefix or not all(rests):
            yield from group
        else:
            yield f"{prefix}{{{BAR.join(_join_ranges(list(_fold(rests))))}}}{tail}"


def _head(text: str) -> str:
    found = _HEAD.match(text)
    return found[0] if found else ""


def _join_ranges(texts: Sequence[str]) -> Iterator[str]:
    """Consecutive whole numbers as a range."""
    numbers = enumerate(int(text) if _NUMBER.fullmatch(text) else None for text in texts)
    for _, found in groupby(numbers, key=lambda pair: pair if pair[1] is None else pair[1] - pair[0]):
        places = [place for place, _ in found]
        first, last = texts[places[0]], texts[places[-1]]
        yield first if first == last else f"{first}-{last}"


def unfold_alternatives(text: str) -> list[str]:
    """The list behind a short form.

    Args:
        text: what `fold_alternatives` wrote for texts that can be folded.

    Example:
        >>> unfold_alternatives("go to {bed 1 | shelf {1-3}} | look")
        ['go to bed 1', 'go to shelf 1', 'go to shelf 2', 'go to shelf 3', 'look']
    """
    return [one for part in _split(text) for one in _unfold(part)]


def _unfold(part: str) -> Iterator[str]:
    begin, end = part.find("{"), part.rfind("}")
    if begin < 0 or end < begin:
        yield part
        return
    for inner in _split(part[begin + 1 : end]):
        numbers = _RANGE.fullmatch(inner)
        inside = map(str, range(int(numbers[1]), int(numbers[2]) + 1)) if numbers else _unfold(inner)
        yield from (f"{part[:begin]}{one}{part[end + 1 :]}" for one in inside)


def _split(text: str) -> list[str]:
    """The parts between bars that stand in no braces."""
    parts, depth = [""], 0
    for piece in re.split(r"([{}]| \| )", text):
        depth += (piece == "{") - (piece == "}")
        if piece == BAR and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts
