"""HTML documents parsed back to texts and clickables, the inverse of `renderer`.

* `ParsedPage` - the same texts and clickables as the `PageModel` of the document
* `FormRequest` - the request of a link or form
* `parse_html` - parses a document
"""

from __future__ import annotations

from functools import cached_property
from html.parser import HTMLParser
from typing import NamedTuple

from webshop_server.page_model import MAX_LENGTH, SEPARATOR, Element, format_rich_text


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


_KINDS = {"btn": "button", "option": "option", "product-link": "product"}


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
