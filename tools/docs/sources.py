"""The pages of the site, from those of the repository.

Pages keep their place below docs/; those outside have one in `PROJECT`. A link to a page, which on GitHub is
relative to a file, becomes one to the page's place on the site; a link to another file of the repository
becomes one to its address. Sections have an index with all their pages, in the order of docs/index.md.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from os.path import relpath
from pathlib import Path
from typing import Final, NamedTuple

GENERATED: Final = "reference/generated"
"""The folder of pages that are generated from the source."""
INDEX: Final = "docs/index.md"

PROJECT: Final[Mapping[str, str]] = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "bench/RESULTS.md": "project/results.md",
    "bench/RELIABILITY.md": "project/reliability.md",
    "CHANGELOG.md": "project/changelog.md",
}
"""Pages outside docs/, and their places on the site."""

_CODE: Final = re.compile(r"^ *(`{3,})[^\n]*\n.*?^ *\1 *$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^)\s]+)\)")
_TITLE: Final = re.compile(r"^# (.*)$", re.MULTILINE)


class Section(NamedTuple):
    """A folder of pages, with its title and what is said above the list of its pages."""

    folder: str
    title: str
    about: str = ""


SECTIONS: Final = (
    Section("tutorials", "Tutorials", "Learning by doing, from the first command to a result."),
    Section("how-to", "How-to guides", "One task each, for people who know what they want."),
    Section("reference", "Reference", "To look things up."),
    Section(
        GENERATED, "Generated from the source", "Made from the source of this version when the site is built."
    ),
    Section("optional-plugins", "Optional plugins"),
    Section("explanation", "Explanation", "How things are, and why."),
    Section("decisions", "Decisions"),
    Section("project", "Project", "How moorage works inside, is worked on, and what was measured."),
)


@dataclass
class Pages:
    """The content of the site's source, by path."""

    texts: dict[str, str] = field(default_factory=dict)
    images: dict[str, Path] = field(default_factory=dict)


def repository_url(root: Path) -> str:
    """The address of the repository, which pyproject.toml says."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    url: str = project["urls"]["Source"]
    return url


def places(root: Path) -> dict[str, str]:
    """Every page of the repository, and its place on the site."""
    found = {}
    for path in sorted((root / "docs").rglob("*.md")):
        inside = path.relative_to(root / "docs")
        place = inside.with_name("index.md") if path.name == "README.md" else inside
        found[path.relative_to(root).as_posix()] = place.as_posix()
    return {**found, **{source: place for source, place in PROJECT.items() if (root / source).exists()}}


def collect(root: Path, generated: Mapping[str, str]) -> Pages:
    """All pages: those of the repository, generated ones, and an index for each section."""
    site = _Site(root, places(root), repository_url(root))
    pages = Pages()
    for source, place in site.places.items():
        pages.texts[place] = site.page(source, pages.images)
    pages.texts.update(generated)
    _add_indices(pages.texts, site.order())
    return pages


def write(pages: Pages, folder: Path) -> None:
    """Write the pages, and remove what is no page any more. Files that are equal already keep their time."""
    contents = {place: text.encode() for place, text in pages.texts.items()}
    contents |= {place: path.read_bytes() for place, path in pages.images.items()}
    for path in folder.rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in contents:
            path.unlink()
    for place, content in contents.items():
        path = folder / place
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


class _Site:
    """The repository, and where its pages are on the site."""

    def __init__(self, root: Path, places: Mapping[str, str], url: str) -> None:
        self.root = root
        self.places = places
        self.url = url

    def page(self, source: str, images: dict[str, Path]) -> str:
        """The text of a page with links as the site needs them; notes its images."""
        text = (self.root / source).read_text("utf-8")

        def changed(link: re.Match[str]) -> str:
            target, title = self._target(source, link["target"], bool(link["image"]), images)
            says_file_name = link["text"] == link["target"].partition("#")[0].rpartition("/")[2]
            return f"{link['image']}[{title if title and says_file_name else link['text']}]({target})"

        return "".join(part if is_code else _LINK.sub(changed, part) for part, is_code in _parts(text))

    def order(self) -> dict[str, int]:
        """The places of pages that docs/index.md links to, with their position in it."""
        links = _LINK.finditer((self.root / INDEX).read_text("utf-8"))
        found = [self.places.get(self._path(INDEX, link["target"].partition("#")[0])) for link in links]
        return {place: index for index, place in reversed(list(enumerate(found))) if place is not None}

    def _target(
        self, source: str, link: str, is_image: bool, images: dict[str, Path]
    ) -> tuple[str, str | None]:
        """Where a link leads to on the site; and if it is to a page, the page's title."""
        file, hash_sign, anchor = link.partition("#")
        if not file or ":" in file:
            return link, None
        path, here = self._path(source, file), self.places[source]
        if (place := self.places.get(path)) is not None:
            text = (self.root / path).read_text("utf-8")
            return f"{_relative(place, here)}{hash_sign}{anchor}", title_of(text)
        if is_image:
            place = f"images/{Path(path).name}"
            assert images.setdefault(place, self.root / path) == self.root / path, place
            return _relative(place, here), None
        view = "tree" if (self.root / path).is_dir() else "blob"
        return f"{self.url}/{view}/main/{path}{hash_sign}{anchor}", None

    def _path(self, source: str, file: str) -> str:
        return (self.root / source).parent.joinpath(file).resolve().relative_to(self.root).as_posix()


def title_of(text: str) -> str:
    """The title of a page."""
    found = _TITLE.search(text)
    return "" if found is None else found[1]


def _relative(place: str, here: str) -> str:
    return Path(relpath(place, Path(here).parent)).as_posix()


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """A text in parts, and whether each is code."""
    end = 0
    for found in _CODE.finditer(text):
        # A link's text may contain code: only code that spans lines separates links.
        if "\n" in found[0]:
            yield text[end : found.start()], False
            yield found[0], True
            end = found.end()
    yield text[end:], False


def _add_indices(texts: dict[str, str], order: Mapping[str, int]) -> None:
    """Add an index to each section, and all of them to the first page."""
    shown = []
    for section in reversed(SECTIONS):  # A section within another one is before it in its list.
        members = _members(texts, section.folder, order)
        if not members:
            continue
        index = f"{section.folder}/index.md"
        own = texts.get(index)
        if own is None:
            texts[index] = f"# {section.title}\n\n{section.about}\n\n{_toctree(members, index, hidden=False)}"
        else:
            texts[index] = f"{own}\n{_toctree(members, index, hidden=True)}"
        if "/" not in section.folder:
            shown.append(index)
    texts["index.md"] += f"\n{_toctree(shown[::-1], 'index.md', hidden=True)}"


def _members(texts: Mapping[str, str], folder: str, order: Mapping[str, int]) -> list[str]:
    """The pages of a section without its index, and the indices of sections within it, in their order."""
    last = len(order)
    found = [place for place in texts if place.startswith(f"{folder}/") and place != f"{folder}/index.md"]
    own = [place for place in found if place.count("/") == folder.count("/") + 1]
    inner = [place for place in found if place not in own and place.endswith("/index.md")]
    return [*sorted(own, key=lambda place: (order.get(place, last), place)), *sorted(inner)]


def _toctree(members: list[str], here: str, *, hidden: bool) -> str:
    lines = [":hidden:"] if hidden else [":maxdepth: 1"]
    lines += [_relative(place, here) for place in members]
    return "\n".join(["```{toctree}", *lines, "```", ""])
