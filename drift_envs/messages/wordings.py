"""Actions in lines and sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from drift_envs.utils.json_schema import NUMBER, coerce, nearest, unquote, violations

_LINE = re.compile(  # no two neighbours repeat the same characters: a long line would take quadratic time
    r"^[ \t*`_>#~\u2022-]*(?:(?:the|my|your|final|next|chosen|best|selected|proposed)[ \t]+)*"
    r"(?P<word>[^\W_]+)(?:[ \t]+\d+)?[ \t*`_]*(?:[:\uff1a]|=(?!=))(?P<value>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
NOUNS = ("action", "answer", "choice", "decision", "move")
"""Words before a colon, behind which an action stands; `Action 3:` is one, too."""
REACT = re.compile(
    r"^[ \t*`_#]*(?:thoughts?|thinking|reasoning|observation)\b[ \t*`_]*\d*[ \t*`_]*:.*(?:\n(?![ \t]*\n).*)*",
    re.IGNORECASE | re.MULTILINE,
)
"""A paragraph of thoughts, or of what a model imagines to happen."""
_CUE = (
    r"\b(?:(?:action|answer|choice|decision|move|option) (?:is|will be|would be|should be)"
    r"|(?:choos|tak|execut)(?:e|ing)|chose|(?:pick|select|play|perform|try|answer)(?:ing)?|go(?:ing)?|mov(?:e|ing)"
    r"|turn(?:ing)?)(?: (?:the|an?|to|with|for|option|action|move|choice|number|now|therefore|thus|simply|clearly|be))"
    r"{0,4}(?: ?[:=])? ?"
)
"""Words behind which a sentence names the action."""
_HEDGE = re.compile(
    r"\b(?:not|never|no|cannot|if|unless|whether|when|might|may|maybe|perhaps|probably|could|avoid\w*|instead|rather"
    r"|except|without|nor|neither|refus\w*|reject\w*|rul(?:e|ed|ing) out|worst|worse|wrong|bad|dangerous|unsafe"
    r"|previous\w*|last|old|former\w*|earlier|first|consider\w*|others?|another|either|was|were|had|did|took|tried"
    r"|fail\w*|holes?)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
"""Words by which a clause does not say what is to be done."""
_CLAUSE = re.compile(
    r"[\n;]|[.!](?=\s|$)|,(?=\s)(?![^\[\]\n]{0,200}\])|\b(?:but|so|therefore|thus|hence|because|since)\b|(?<=\?)"
)
_AFTER = r"(?=[\"'`*_)\]}]*(?:$|[.!](?: |$)|[,;:](?: |$)| ?\(| (?:-|\u2013|\u2014|as|here|now)(?: |$)))"
_MARKED = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|\"([^\"\n]+)\"|\\boxed\{([^{}\n]*)\}")
_LABEL = re.compile(r"\s*(?:[-*\u2022>]\s+)?(?:(?:action|option|choice|move)\s+)?", re.IGNORECASE)


class Wordings:
    """The values of a property that words name.

    Args:
        rule: the schema of the property; sentences are read for listed values alone.
        is_open: whether values that it does not list may be meant, see `drift_envs.messages.read_action`.
    """

    def __init__(self, rule: Mapping[str, Any], is_open: bool) -> None:
        self._rule = rule
        self._listed: Sequence[Any] = rule.get("enum", ())
        self._forms = _forms(self._listed) if is_open else {}

    def read_alone(self, text: str) -> Iterator[Any]:
        """The value if a text is the value alone."""
        value = coerce(unquote(text), self._rule)
        if not violations(value, self._rule):
            yield value

    def shorten(self, value: str) -> str:
        """A value without what is said about it, as in `1 (down)`; the text itself if that is unclear."""
        if not self._listed or nearest(value, self._listed) in self._listed:
            return value
        names = self._pattern()
        found = re.match(rf"[\"'`*_(\[]*(?:\\boxed\{{)?(?P<name>{names}){_AFTER}", value, re.IGNORECASE)
        if found is None:
            return value
        rest = re.search(rf"(?<![\w.-])(?:{names})(?![\w-]|\.\d)", value[found.end() :], re.IGNORECASE)
        is_clear = rest is None or nearest(rest[0], self._listed) == nearest(found["name"], self._listed)
        return found["name"] if is_clear else value

    def find_stated(self, text: str) -> Iterator[Any]:
        """Lines and marked words that are the value alone, and sentences such as "The answer is ..."."""
        clauses = list(_clauses(REACT.sub("", text)))
        sentence = re.compile(rf"{_CUE}[\"'`*_(\[]*(?P<name>{self._pattern()}){_AFTER}", re.IGNORECASE)
        for clause in clauses:
            for found in sentence.finditer(clause):
                if not _HEDGE.search(clause[: found.start("name")]):
                    yield found["name"]
        for line in text.splitlines():
            yield from self.read_alone(line)
            yield from self.read_alone(_LABEL.sub("", line, count=1))
        for clause in clauses:
            for marked in () if _HEDGE.search(clause) else _MARKED.finditer(clause):
                yield from self.read_alone(next(filter(None, marked.groups()), ""))

    def find_mentioned(self, text: str) -> Iterator[Any]:
        """Values of several words, or with brackets, among other words."""
        several = [name for name in self._listed if isinstance(name, str) and re.match(r"[^\W\d].*\W\w", name)]
        if not several:
            return
        named = re.compile(rf"(?<!\w)(?:{_alternatives(several)})(?!\w)", re.IGNORECASE)
        for clause in _clauses(REACT.sub("", text)):
            yield from (found[0] for found in (() if _HEDGE.search(clause) else named.finditer(clause)))

    def _pattern(self) -> str:
        """A pattern of all values that are listed, and of those that are written like them."""
        return "|".join(filter(None, [_alternatives([str(name) for name in self._listed]), *self._forms.values()]))


def find_last_line(text: str, words: Set[str]) -> tuple[str, str] | None:
    r"""The text before the last line that begins with a word and a colon, and what stands behind the colon.

    Args:
        text: the text.
        words: the words, in small letters.

    Example:
        >>> find_last_line("Safe.\n- Action: 1", {"action"})
        ('Safe.\n', '1')
    """
    lines = [line for line in _LINE.finditer(text) if line["word"].lower() in words]
    if not lines:
        return None
    rest = re.sub(r"\A\s*(?:[*`_]*[ \t]*\n\s*)?(?:```\w*\s*)?", "", text[lines[-1].start("value") :], count=1)
    return text[: lines[-1].start()], rest


def _forms(actions: Sequence[Any]) -> dict[str, str]:
    """How actions are written of which not all are shown: numbers, and words with brackets."""
    texts = [action for action in actions if isinstance(action, str)]
    forms = {}
    if texts and all(map(NUMBER.fullmatch, texts)):
        forms["number"] = r"[-+]?\d+(?:\.\d+)?"
    if any(re.fullmatch(r"\w+\[.*\]", text) for text in texts):
        forms["bracket"] = r"\w+\[[^\[\]\n]*\]"
    return forms


def _alternatives(names: Sequence[str]) -> str:
    """A pattern for any of some texts, the longest first."""
    ordered = sorted((" ".join(name.split()) for name in names), key=len, reverse=True)
    return "|".join(map(re.escape, filter(None, ordered)))


def _clauses(text: str) -> Iterator[str]:
    """The clauses that are no question, with single spaces."""
    for clause in _CLAUSE.split(text):
        if clause.strip() and not clause.rstrip().endswith("?"):
            yield " ".join(clause.split())
