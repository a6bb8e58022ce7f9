"""The site as it was built: links that lead nowhere, and what a browser would load from elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_LOADED: Final = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
    "use": ("href",),
    "image": ("href",),
}
"""What a browser loads without being asked, by element."""
_NOT_LOADED: Final = ("canonical", "next", "prev", "index", "search", "author", "help", "license")
"""Relations of `<link>` that only name another page."""
_ELSEWHERE: Final = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
_IN_STYLES: Final = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)", re.IGNORECASE)


class _Page(HTMLParser):
    """The links, resources and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links: list[str] = []
        self.resources: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element links to, loads, and is called."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        relation = given.get("rel", "").partition(" ")[0]
        is_only_named = tag == "link" and relation in _NOT_LOADED
        for name in _LOADED.get(tag, ()):
            if given.get(name):
                (self.links if is_only_named else self.resources).append(given[name])
        self.resources += _IN_STYLES.findall(given.get("style", ""))


class _Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    @cached_property
    def pages(self) -> dict[Path, _Page]:
        """All pages, by path."""
        return {path: _Page(path) for path in sorted(self.folder.rglob("*.html"))}

    def dead(self, page: _Page, link: str) -> bool:
        """Whether a link of a page leads nowhere on the site."""
        file, _, anchor = unquote(link).partition("#")
        path = (page.path.parent / file.partition("?")[0]).resolve() if file else page.path
        if path.is_dir():
            path = path / "index.html"
        if not path.is_relative_to(self.folder) or not path.is_file():
            return True
        return bool(anchor) and path in self.pages and anchor not in self.pages[path].ids


def problems(folder: Path) -> list[str]:
    """Every dead link, and every resource from elsewhere, one line each."""
    return [*_of_pages(_Site(folder)), *_of_styles(folder)]


def _of_pages(site: _Site) -> Iterator[str]:
    for path, page in site.pages.items():
        name = path.relative_to(site.folder)
        for resource in page.resources:
            if _ELSEWHERE.match(resource) and not resource.startswith("data:"):
                yield f"{name}: {resource} is loaded from elsewhere"
        for link in (*page.links, *page.resources):
            if not _ELSEWHERE.match(link) and site.dead(page, link):
                yield f"{name}: {link} leads nowhere"


def _of_styles(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*.css")):
        for resource in _IN_STYLES.findall(path.read_text("utf-8")):
            yield f"{path.relative_to(folder)}: {resource} is loaded from elsewhere"
