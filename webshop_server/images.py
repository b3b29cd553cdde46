"""Pictures of listings, drawn: nothing is loaded from elsewhere.

* `picture` - an SVG of a listing, by department and colour
* `HUES` - how colour words look
"""

from __future__ import annotations

import hashlib

HUES = {
    "black": "#2b2b2e",
    "white": "#f7f7f5",
    "red": "#c8372d",
    "yellow": "#ecc531",
    "blue": "#2f6fc4",
    "green": "#3c8d4f",
    "orange": "#e58a2b",
    "purple": "#7a4fa3",
    "pink": "#e58bb0",
    "brown": "#80583a",
    "gray": "#8d9499",
    "grey": "#8d9499",
    "teal": "#1f8a88",
}
"""How colour words look; any other word gets a colour of its own."""

_PASTELS = ("#e8eff5", "#f3ece4", "#e9f2ea", "#f4e9ec", "#efecf6", "#f5f1df")
_FALLBACK = ("#4d7ea8", "#8a6d4f", "#5f8f6b", "#a8677c", "#7b6ca8", "#a39042")

_SHAPES = {
    "fashion": '<path d="M68 52 84 44q16 14 32 0l16 8 24 26-18 16-10-8v66H72V86l-10 8-18-16z" {paint}/>',
    "beauty": """
<rect x="74" y="76" width="52" height="82" rx="10" {paint}/>
<rect x="86" y="48" width="28" height="26" rx="4" {dark}/>
<rect x="84" y="104" width="32" height="28" rx="3" {label}/>""",
    "electronics": """
<rect x="46" y="54" width="108" height="78" rx="8" {paint}/>
<rect x="55" y="63" width="90" height="60" rx="3" {label}/>
<path d="M88 132h24l6 18H82z" {dark}/>""",
    "garden": """
<path d="M60 60h80a8 8 0 0 1 8 8v44H52V68a8 8 0 0 1 8-8z" {paint}/>
<path d="M40 98h18v20h84V98h18v44H40z" {dark}/>
<path d="M52 142h10v14H52zM138 142h10v14h-10z" {dark}/>""",
    "grocery": """
<path d="M70 72h60l6 14v66a8 8 0 0 1-8 8H72a8 8 0 0 1-8-8V86z" {paint}/>
<rect x="68" y="50" width="64" height="20" rx="4" {dark}/>
<rect x="64" y="98" width="72" height="36" {label}/>""",
}
_BOX = """
<path d="M50 72l50-24 50 24v62l-50 24-50-24z" {paint}/>
<path d="M50 72l50 24 50-24M100 96v62" fill="none" {line}/>"""


def picture(asin: str, category: str, color: str = "") -> str:
    """Draw a listing.

    Args:
        asin: the listing's name, which decides the background.
        category: its department, which decides the shape.
        color: a colour word; any text.

    Returns:
        An SVG document that holds no text of a user.

    Example:
        >>> picture("B01", "fashion", "red").startswith("<svg ")
        True
    """
    number = hashlib.blake2b(asin.encode("utf-8", "replace"), digest_size=2).digest()
    hue = next((HUES[word] for word in color.lower().split() if word in HUES), _FALLBACK[number[1] % len(_FALLBACK)])
    edge = 'stroke="#00000030" stroke-width="2" stroke-linejoin="round"'
    shape = _SHAPES.get(category, _BOX)
    drawn = (
        shape.replace("{paint}", f'fill="{hue}" {edge}')
        .replace("{dark}", f'fill="{hue}" fill-opacity=".7" {edge}')
        .replace("{label}", 'fill="#fff" fill-opacity=".75"')
        .replace("{line}", edge)
    )
    ground = _PASTELS[number[0] % len(_PASTELS)]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 200 200">'
        f'<rect width="200" height="200" fill="{ground}"/>{drawn}</svg>'
    )
