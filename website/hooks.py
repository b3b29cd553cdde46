"""Hooks of MkDocs: pages that `docs/` does not hold, and links that leave it.

* `on_config` - adds the pages of environments to `nav`, and pages that it does not name under "More"
* `on_files` - adds the start page, documents of the root, notebooks, environments, schedules, the board and own files
* `on_page_markdown` - rewrites links to files outside `docs/`, and shows thumbnails
* `on_page_content` - marks the cells that hold sentences
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from drift_agents.analysis.evidence import SUFFIX, read_evidence
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from drift_envs.registration import IDS
from research.verify_map.board import to_board_page
from research.verify_map.rules import read_rules
from website import environments, notebooks, schedules, shipped

ROOT = Path(__file__).resolve().parent.parent
FROM_ROOT = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
NOTEBOOKS = {
    f"examples/notebooks/{path.name}": f"notebooks/{path.stem}.md" for path in notebooks.FOLDER.glob("*.ipynb")
}
LINES, INTERACTIVE = "research/results/verify_map", "interactive_board.html"
BOARD = "research/leaderboard.html"
"""The page of the site with the board's table."""
"""The folder of stored lines, and the page of the site that shows them, as soon as there are some."""
SCHEDULES = "shipped_schedules.md"
ENVIRONMENTS = {f"environments/{env_id}.md": env_id for env_id in IDS}
GENERATED = {*FROM_ROOT.values(), *ENVIRONMENTS, SCHEDULES}
THUMBNAILS = "<!-- thumbnails -->"
"""Where the pictures of all environments stand in `environments.md`."""
SENTENCE = 40
"""Characters of a cell that holds more than a name."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def pages_of(nav: Any) -> set[str]:
    """The pages that a navigation names."""
    if isinstance(nav, str):
        return {nav}
    parts = nav.values() if isinstance(nav, dict) else nav or []
    return set().union(*(pages_of(part) for part in parts))


def titled(path: Path) -> str:
    """The first heading of a page."""
    found = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else path.stem


def add_environments(nav: Any) -> None:
    """Put the pages of environments behind their overview, wherever a navigation names it."""
    if isinstance(nav, list):
        if "environments.md" in nav:
            place = nav.index("environments.md") + 1
            nav[place:place] = environments.navigation()
        for part in nav:
            for section in part.values() if isinstance(part, dict) else ():
                add_environments(section)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the pages of environments to `nav`, and those that it does not name."""
    docs = Path(config.docs_dir)
    add_environments(config.nav)
    found = {path.relative_to(docs).as_posix(): path for path in sorted(docs.rglob("*.md"))}
    rest = [{titled(path): name} for name, path in found.items() if name not in pages_of(config.nav)]
    if rest and config.nav is not None:
        config.nav.append({"More": rest})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what `docs/` does not hold."""
    for name, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    for asset in sorted((ROOT / "website" / "assets").iterdir()):
        files.append(File.generated(config, f"assets/{asset.name}", abs_src_path=str(asset)))
    for name, page in NOTEBOOKS.items():
        text, drawn = notebooks.read_notebook(ROOT / name)
        files.append(File.generated(config, page, content=text))
        for picture, data in drawn.items():
            files.append(File.generated(config, f"notebooks/{picture}", content=data))
    files.append(File.generated(config, SCHEDULES, content=schedules.page()))
    for page, env_id in ENVIRONMENTS.items():
        files.append(File.generated(config, page, content=environments.page(env_id)))
    if has_lines():
        book = read_rules(ROOT / "research" / "verify_map" / "rules.yaml")
        page = to_board_page(read_evidence([ROOT / LINES]), book, back=BOARD)
        files.append(File.generated(config, INTERACTIVE, content=page))
    return files


def has_lines() -> bool:
    """Whether lines are stored that the interactive board can show."""
    return any((ROOT / LINES).glob(f"*{SUFFIX}"))


def link(page: str, target: str) -> str:
    """The target of a link in a page of the site, given the target as it stands in the repository's file.

    A file that is no page of the site has none.
    """
    sources = {built: name for name, built in (FROM_ROOT | NOTEBOOKS).items()}
    here = ROOT / sources[page] if page in sources else ROOT / "docs" / page
    path = (here.parent / target).resolve()
    up = "../" * page.count("/")
    if path == shipped.TABLE:
        return up + SCHEDULES
    if path.is_relative_to(ROOT / "docs"):
        return up + path.relative_to(ROOT / "docs").as_posix()
    name = path.relative_to(ROOT).as_posix()
    if name in FROM_ROOT | NOTEBOOKS:
        return up + (FROM_ROOT | NOTEBOOKS)[name]
    if name == LINES and has_lines():
        return up + INTERACTIVE
    return ""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite links to files outside `docs/`, and of pages that come from the root."""
    name = page.file.src_uri
    if name in GENERATED - set(FROM_ROOT.values()):
        return markdown

    def rewritten(match: re.Match[str]) -> str:
        mark, text, target, anchor = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        found = link(name, target)
        if mark and (ROOT / "docs" / found).with_name(f"{Path(found).stem}-narrow.svg").is_file():
            narrow = f"{found.removesuffix('.svg')}-narrow.svg"
            return (
                f'<picture><source media="(max-width: 700px)" srcset="{narrow}">'
                f'<img src="{found}" alt="{text}"></picture>'
            )
        return f"{mark}[{text}]({found}{anchor or ''})" if found else text

    markdown = markdown.replace(THUMBNAILS, environments.thumbnails())
    pieces = re.split(r"(^```.*?^```)", markdown, flags=re.DOTALL | re.MULTILINE)
    pages = (
        piece if index % 2 else LINK.sub(rewritten, piece.replace(" ± ", "&nbsp;±&nbsp;"))
        for index, piece in enumerate(pieces)
    )
    return "".join(pages)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Mark the cells of tables that hold sentences."""

    def marked(match: re.Match[str]) -> str:
        shown = re.sub(r"<[^>]*>", "", match[1])
        return f'<td class="words">{match[1]}</td>' if len(shown) > SENTENCE else match[0]

    return re.sub(r"<td>(.*?)</td>", marked, html, flags=re.DOTALL)
