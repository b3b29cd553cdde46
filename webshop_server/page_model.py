"""The page model: the one source of a page's text, HTML and clickables; actions on it, and documents read back to it.

Every visible text of the HTML is an element, in the same order: text, HTML and clickables agree by construction.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from typing import NamedTuple, Protocol, TypedDict, TypeVar

from webshop_server.errors import ArgumentError
from webshop_server.product import clean
from webshop_server.urls import PageUrl, build_path, normalize_query

SEPARATOR = " [SEP] "

BASE_CHARSET = frozenset(chr(code) for code in range(32, 127)) | {"\n"}
"""The characters that a page can show with every catalogue."""

MAX_LENGTH = 32_768
"""The default maximum length of a page's text, in characters."""

MAX_ACTION = 4096
"""The maximum length of an action, in characters."""

SESSION_OVER = "the session is over: something has been bought"
"""The error of an action after the purchase."""

T_co = TypeVar("T_co", covariant=True)
_ACTION = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)
_KINDS = {"btn": "button", "option": "option", "product-link": "product"}


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


class ShownPage(Protocol[T_co]):
    """A page as an agent sees it: a `PageModel`, or one that was parsed from HTML; targets are of the type `T_co`."""

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
    def clickables(self) -> Mapping[str, T_co | None]:
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


class ActionResult(NamedTuple):
    """The result of an action.

    Args:
        page: the current page.
        reward: the score of the purchase if this action completed it, else 0.0.
        is_done: whether the session is over.
        error: the reason why the action was invalid, or `None`.
    """

    page: ShownPage[object]
    reward: float
    is_done: bool
    error: str | None


class AvailableActions(TypedDict):
    """The valid actions of a page, in the original's form."""

    has_search_bar: bool
    clickables: list[str]


def list_available_actions(page: ShownPage[object]) -> AvailableActions:
    """Return the valid actions of a page, in the original's form."""
    return {"has_search_bar": page.has_search_bar, "clickables": list(page.clickables)}


def parse_action(action: object) -> tuple[str, str]:
    """Split an action into name and argument.

    Raises:
        ArgumentError: it does not have the form `search[words]` or `click[label]`.

    Example:
        >>> parse_action("Click[Buy Now]")
        ('click', 'Buy Now')
    """
    if not isinstance(action, str):
        raise ArgumentError(f"`action` should be a text. Received {type(action).__name__}")
    if len(action) > MAX_ACTION:
        raise ArgumentError(f"`action` should have at most {MAX_ACTION} characters. Received {len(action)}")
    found = _ACTION.fullmatch(action)
    if not found or found[1].lower() not in ("search", "click"):
        raise ArgumentError(f"`action` should be search[words] or click[label]. Received {_short(action)}")
    return found[1].lower(), found[2].strip()


def check_search(page: ShownPage[object], words: str) -> str:
    """Return the normalised query of a search on this page.

    Raises:
        ArgumentError: the page has no search bar, or the query is empty.
    """
    if not page.has_search_bar:
        raise ArgumentError("there is no search bar on this page")
    keywords = normalize_query(words)
    if not keywords:
        raise ArgumentError("a search needs words: search[words]")
    return keywords


def find_label(label: str, known: Container[str]) -> str:
    """Return the label of a page that a label means: in lower case, and with single blanks unless it is known.

    A recorded label of the original has two blanks where it replaces a slash.
    """
    wanted = label.lower()
    return wanted if wanted in known else clean(wanted)


def check_click(page: ShownPage[T_co], label: str) -> T_co:
    """Return the target of a label on this page.

    Raises:
        ArgumentError: no element of the page has the label, or it is the search button.
    """
    wanted = find_label(label, page.clickables)
    if wanted not in page.clickables:
        raise ArgumentError(f"there is no button {_short(label)} on this page")
    target = page.clickables[wanted]
    if target is None:
        raise ArgumentError("a search needs words: search[words]")
    return target


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "...")


class FormRequest(NamedTuple):
    """The request of a link or form.

    Args:
        method: `GET` or `POST`.
        path: the path of the URL.
        fields: the fields of the form.
    """

    method: str
    path: str
    fields: tuple[tuple[str, str], ...] = ()


class ParsedPage:
    """The texts and clickables of a document, under the names that `PageModel` has.

    Args:
        elements: the content of `main`, in reading order; targets are empty.
        clickables: the request of each label, in lower case; `None` for the search button.
        path: the path of the document's URL.
        reward: the score shown, or `None`.
        search: the path of the search form, or "".
        max_length: the maximum length of a text.
    """

    def __init__(
        self,
        elements: tuple[Element, ...],
        clickables: dict[str, FormRequest | None],
        *,
        path: str = "",
        reward: float | None = None,
        search: str = "",
        max_length: int = MAX_LENGTH,
    ) -> None:
        self.elements = elements
        self.clickables = clickables
        self.path = path
        self.reward = reward
        self.search = search
        self.max_length = max_length

    @property
    def has_search_bar(self) -> bool:
        """Whether the page accepts `search[words]`."""
        return bool(self.search)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The visible texts in reading order."""
        return tuple(element.text for element in self.elements if element.text)

    @cached_property
    def text(self) -> str:
        """The visible texts, joined as in the original's `text` mode."""
        return SEPARATOR.join(self.parts)[: self.max_length]

    @cached_property
    def text_rich(self) -> str:
        """The visible texts with marks around what can be clicked."""
        return format_rich_text(self.elements)[: self.max_length]


def parse_html(document: str, path: str = "", *, max_length: int = MAX_LENGTH) -> ParsedPage:
    """Parse a document.

    Args:
        document: the HTML, from the server or from the DOM of a browser.
        path: the path of its URL.
        max_length: the maximum length of a text.

    Example:
        >>> page = parse_html('<main id="page"><p>Hello</p><a class="btn" href="/abc">Back</a></main>')
        >>> page.text, page.clickables["back"].path
        ('Hello [SEP] Back', '/abc')
    """
    reader = _Reader()
    reader.feed(document)
    reader.close()
    reward = None
    if reader.reward:
        try:
            reward = float(reader.reward)
        except ValueError:
            reward = None
    return ParsedPage(
        tuple(reader.elements),
        reader.clickables,
        path=path,
        reward=reward,
        search=reader.search,
        max_length=max_length,
    )


class _Reader(HTMLParser):
    """Collects the text nodes inside `main`, and the requests of the links and buttons around them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.clickables: dict[str, FormRequest | None] = {}
        self.search = ""
        self.reward = ""
        self._is_inside = False
        self._form: tuple[str, str] = ("GET", "")
        self._tag: tuple[str, dict[str, str]] | None = None
        self._in_reward = False
        self._text = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._flush()
        found = {name: value or "" for name, value in attributes}
        if tag == "main" and found.get("id") == "page":
            self._is_inside = True
        elif tag == "form":
            self._form = (found.get("method", "get").upper(), found.get("action", ""))
        elif found.get("id") == "search_input" and self._is_inside:
            self.search = self._form[1]
            self.elements.append(Element("search", ""))
        elif "data-title" in found and self._is_inside:
            self.elements.append(Element("listing", "", name=found["data-title"]))
        elif tag in ("a", "button"):
            self._tag = (tag, found)
        elif found.get("id") == "reward":
            self._in_reward = True

    def handle_endtag(self, tag: str) -> None:
        self._flush()
        if tag == "main":
            self._is_inside = False
        elif tag == "form":
            self._form = ("GET", "")
        elif tag in ("a", "button"):
            self._tag = None
        elif tag == "p":
            self._in_reward = False

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self._text += data

    def close(self) -> None:
        super().close()
        self._flush()

    def _flush(self) -> None:
        text, self._text = self._text.strip(), ""
        if not text:
            return
        if self._in_reward:
            self.reward = text
        self.elements.append(self._element(text))

    def _element(self, text: str) -> Element:
        if self._tag is None:
            return Element("text", text)
        tag, found = self._tag
        kind = next((_KINDS[name] for name in found.get("class", "").split() if name in _KINDS), "text")
        label = found.get("data-label") or text.lower()
        form: FormRequest | None = FormRequest("GET", found.get("href", ""))
        if tag == "button":
            kind = "submit"
            name = found.get("name")
            form = FormRequest(*self._form, ((name, found.get("value", "")),) if name else ())
            if self.search and self._form[1] == self.search:
                form = None  # the search button needs words
        if kind == "option" and "data-label" in found and found["data-label"] == "":
            return Element(kind, text)
        self.clickables[label] = form
        is_chosen = "aria-current" in found or "data-visited" in found
        return Element(kind, text, None, label, found.get("data-name", ""), is_chosen)
