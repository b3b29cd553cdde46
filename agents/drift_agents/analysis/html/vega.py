"""Interactive charts inside a page: Vega-Lite, whose libraries vl-convert inlines.

* `bundle_chart` - a page's script with the libraries that it uses
* `read_part` - a template, a style, a script or a chart of this folder
* `DASHES` - of lines, in the order in which they are given away
"""

from __future__ import annotations

from importlib import resources

from drift_agents.errors import MissingDependencyError

DASHES = ((1, 0), (7, 3), (2, 2), (7, 2, 2, 2), (4, 4), (12, 3))
"""Lengths of dashes and gaps in pixels, so that equal lines can be told apart."""


def bundle_chart(script: str) -> str:
    """A page's script with the libraries that it uses; it can stand inside a `script` element.

    Args:
        script: the page's own script; it follows `chart.js`.

    Raises:
        MissingDependencyError: without vl-convert.
    """
    try:
        import vl_convert
    except ImportError as error:
        message = '`vl-convert-python` is not installed, run `pip install "drift-envs[agents]"`'
        raise MissingDependencyError(message) from error
    source = read_part("chart.js") + script
    return str(vl_convert.javascript_bundle(source)).replace("</script", "<\\/script")


def read_part(name: str) -> str:
    """A file of this folder.

    Args:
        name: its name.
    """
    return (resources.files("drift_agents.analysis.html") / name).read_text("utf-8")
