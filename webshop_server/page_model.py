"""The page model: the one source of a page's text, HTML and clickables.

* `Element` - a text, a button, an option, a link to a listing, or the search bar
* `PageSection` - a group of elements
* `PageModel` - sections in reading order, with the properties `text`, `text_rich`, `clickables` and `path`
* `ShownPage` - the protocol of `PageModel` and of pages that were parsed from HTML
* `format_rich_text` - elements as text with marks around what can be clicked

Every visible text of the HTML is an element, in the same order: text, HTML and clickables agree by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

from webshop_server.urls import PageUrl, build_path

SEPARATOR = " [SEP] "
BASE_CHARSET = frozenset(chr(code) for code in range(32, 127)) | {"\n"}
"""The characters that a page can show with every catalogue."""

MAX_LENGTH = 32_768
"""The default maximum length of a page's text, in characters."""


class Element(NamedTuple):
    """A part of a page.

    Args:
        kind: `title`, `text`, `search` (the search bar), `button` (a link to a page), `submit` (changes
            state: search, purchase), `option`, `product`, or `listing` (picture and title of a listing, which stand
            beside the texts; `name` is the title).
        text: the visible text.
        target: where a click leads, or `None`.
        label: the argument of `click[...]`, in lower case, or "".
        name: the option's group, or the role of a text (`price`, `rating`, `reward` ...).
        is_chosen: whether an option is chosen, or a listing has been visited.
    """

    kind: str
    text: str
    target: PageUrl | None = None
    label: str = ""
    name: str = ""
    is_chosen: bool = False


class PageSection(NamedTuple):
    """A group of elements.

    Args:
        kind: selects the markup in the template.
        elements: its elements, in reading order.
        sections: its subsections, after its elements.
    """

    kind: str
    elements: tuple[Element, ...] = ()
    sections: tuple[PageSection, ...] = ()


@dataclass(frozen=True)
class PageModel:
    """The content of one page.

    Args:
        url: the page's URL.
        session_id: the session; occurs in paths only.
        sections: the content.
        charset: the characters that may be shown; others become `?`.
        max_length: the maximum length of a text; longer ones are cut.
        theme: the look of the document.

    Example:
        >>> from webshop_server.urls import PageKind
        >>> back = Element("button", "Back to Search", PageUrl(PageKind.START), "back to search")
        >>> toolbar = PageSection("toolbar", (back, Element("text", "Page 1")))
        >>> page = PageModel(PageUrl(PageKind.RESULTS, "mug"), "abc", (toolbar,))
        >>> page.text
        'Back to Search [SEP] Page 1'
        >>> list(page.clickables), page.path
        (['back to search'], '/search_results/abc/mug/1')
    """

    url: PageUrl
    session_id: str
    sections: tuple[PageSection, ...]
    charset: frozenset[str] = BASE_CHARSET
    max_length: int = MAX_LENGTH
    theme: str = "standard"

    def __reduce__(self) -> tuple[object, ...]:  # without the cached properties
        return PageModel, (self.url, self.session_id, self.sections, self.charset, self.max_length, self.theme)

    def __deepcopy__(self, memo: dict[int, object]) -> PageModel:
        return self  # frozen, hence shared

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """All elements in reading order."""
        return tuple(_flatten(self.sections))

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The visible texts in reading order, equal to the text nodes of the HTML's `main`."""
        return tuple(self.fit(element.text) for element in self.elements if element.text)

    @cached_property
    def text(self) -> str:
        """The visible texts, joined as in the original's `text` mode."""
        return SEPARATOR.join(self.parts)[: self.max_length]

    @cached_property
    def text_rich(self) -> str:
        """The visible texts with marks around what can be clicked, as in the original's `text_rich` mode."""
        shown = [element._replace(text=self.fit(element.text)) for element in self.elements]
        return format_rich_text(shown)[: self.max_length]

    @cached_property
    def clickables(self) -> dict[str, PageUrl | None]:
        """The target of each label, in lower case; `None` for the search button."""
        return {element.label: element.target for element in self.elements if element.label}

    @cached_property
    def has_search_bar(self) -> bool:
        """Whether the page accepts `search[words]`."""
        return any(element.kind == "search" for element in self.elements)

    @property
    def path(self) -> str:
        """The path of the page's URL."""
        return build_path(self.url, self.session_id)

    def fit(self, text: str) -> str:
        """Replace every character outside `charset` by `?`."""
        if text.isascii() and text.isprintable():
            return text
        charset = self.charset
        return "".join(char if char in charset else "?" for char in text)


class ShownPage(Protocol):
    """A page as an agent sees it: a `PageModel`, or a page that was parsed from HTML."""

    @property
    def text(self) -> str:
        """The visible texts joined by ` [SEP] `."""

    @property
    def text_rich(self) -> str:
        """The visible texts with marks around what can be clicked."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The visible texts in reading order."""

    @property
    def elements(self) -> tuple[Element, ...]:
        """The elements in reading order."""

    @property
    def path(self) -> str:
        """The path of the URL."""

    @property
    def clickables(self) -> Mapping[str, object | None]:
        """The target of each label, in lower case; `None` for the search button."""

    @property
    def has_search_bar(self) -> bool:
        """Whether the page accepts `search[words]`."""


def format_rich_text(elements: Iterable[Element]) -> str:
    """Return elements as text with marks around what can be clicked, as in the original's `text_rich` mode."""
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
