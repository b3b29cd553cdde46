"""The page model: the one source of a page's text, HTML and clickables.

* `Element` - a text, a button, an option, a link to a listing, or the search bar
* `PageSection` - elements that belong together
* `Page` - sections in reading order; gives `text`, `text_rich`, `clickables` and the address
* `rich_text` - elements as text with marks for what can be clicked

Every visible text of the HTML is an element, in the same order, so that the three cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from webshop_server.urls import Location, to_path

SEPARATOR = " [SEP] "
BASE_CHARSET = frozenset(chr(code) for code in range(32, 127)) | {"\n"}
"""The characters that a page can show whatever the catalogue holds."""

MAX_LENGTH = 32_768
"""The characters that a page's text has at most, if not told otherwise."""


class Element(NamedTuple):
    """A part of a page.

    Args:
        kind: `title`, `text`, `search` (the bar), `button` (leads to a page), `submit` (changes
            something: search, purchase), `option`, or `product`.
        text: what is read.
        target: where a click leads, or `None`.
        label: what a click calls it, in lower case, or "".
        name: the option's group, or what a text is (`price`, `rating`, `reward` ...).
        is_chosen: whether an option is chosen, or a listing has been visited.
    """

    kind: str
    text: str
    target: Location | None = None
    label: str = ""
    name: str = ""
    is_chosen: bool = False


class PageSection(NamedTuple):
    """Elements that belong together.

    Args:
        kind: what the section is, which decides how it looks.
        elements: its elements, in reading order.
        sections: its own sections, after its elements.
    """

    kind: str
    elements: tuple[Element, ...] = ()
    sections: tuple[PageSection, ...] = ()


@dataclass(frozen=True)
class Page:
    """One page as it was shown.

    Args:
        location: where it is.
        session_id: whose page it is; stands in addresses alone.
        sections: what it shows.
        charset: the characters that it may show; others become `?`.
        max_length: how long a text may be; longer ones are cut.

    Example:
        >>> from webshop_server.urls import PageKind
        >>> back = Element("button", "Back to Search", Location(PageKind.START), "back to search")
        >>> toolbar = PageSection("toolbar", (back, Element("text", "Page 1")))
        >>> page = Page(Location(PageKind.RESULTS, "mug"), "abc", (toolbar,))
        >>> page.text
        'Back to Search [SEP] Page 1'
        >>> list(page.clickables), page.path
        (['back to search'], '/search_results/abc/mug/1')
    """

    location: Location
    session_id: str
    sections: tuple[PageSection, ...]
    charset: frozenset[str] = BASE_CHARSET
    max_length: int = MAX_LENGTH

    def __reduce__(self) -> tuple[Any, ...]:  # without what has been computed from it
        return Page, (self.location, self.session_id, self.sections, self.charset, self.max_length)

    def __deepcopy__(self, memo: dict[int, Any]) -> Page:
        return self  # frozen, hence shared

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """All elements in reading order."""
        return tuple(_flatten(self.sections))

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The visible texts in reading order; the text nodes of the HTML's `main` are the same."""
        return tuple(self.fit(element.text) for element in self.elements if element.text)

    @cached_property
    def text(self) -> str:
        """The visible texts, joined as in the original's `text` mode."""
        return SEPARATOR.join(self.parts)[: self.max_length]

    @cached_property
    def text_rich(self) -> str:
        """The visible texts with marks for what can be clicked, as in the original's `text_rich` mode."""
        shown = [element._replace(text=self.fit(element.text)) for element in self.elements]
        return rich_text(shown)[: self.max_length]

    @cached_property
    def clickables(self) -> dict[str, Location | None]:
        """What can be clicked, by label in lower case; the search button's target is `None`."""
        return {element.label: element.target for element in self.elements if element.label}

    @cached_property
    def has_search_bar(self) -> bool:
        """Whether words can be searched from here."""
        return any(element.kind == "search" for element in self.elements)

    @property
    def path(self) -> str:
        """The address without host."""
        return to_path(self.location, self.session_id)

    def fit(self, text: str) -> str:
        """Give a text with `?` for every character that the page may not show."""
        if text.isascii() and text.isprintable():
            return text
        charset = self.charset
        return "".join(char if char in charset else "?" for char in text)


def rich_text(elements: Iterable[Element]) -> str:
    """Give elements as text with marks for what can be clicked, as in the original's `text_rich` mode."""
    lines: list[str] = []
    chosen: list[str] = []
    for element in elements:
        text = element.text
        if not text:
            continue
        mark = "clicked button" if element.is_chosen else "button"
        if element.kind in ("button", "submit"):
            lines.append(f"[button] {text} [button_]")
        elif element.kind == "option":
            lines.append(f"  [{mark}] {text} [{mark}_]")
            if element.is_chosen:
                chosen.append(f"You have clicked {text}.")
        elif element.kind == "product":
            lines.append(f"\n[{mark}] {text} [{mark}_]")
        else:
            lines.append(text)
    return "".join(f"{line}\n" for line in (*reversed(chosen), *lines))


def _flatten(sections: Iterable[PageSection]) -> Iterable[Element]:
    for section in sections:
        yield from section.elements
        yield from _flatten(section.sections)
