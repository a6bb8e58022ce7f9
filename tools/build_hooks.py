"""What the build backend cannot read from pyproject.toml: the long description, and manual pages.

README.md links to files beside it. On an index there are none, so its links lead to this version of the
project's repository there. `make man` writes the manual pages; a build without them has none.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

MANUAL: Final = "build/man"
"""The folder of manual pages, in the tree and in a source distribution."""
_LINK: Final = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+://|#)(?P<path>[^)\s]+)\)")


class LongDescription(MetadataHookInterface):
    """README.md with links that lead somewhere from anywhere."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the field `readme`."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        source, version = metadata["urls"]["Source"], metadata["version"]
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, source, f"v{version}")}


class Manual(BuildHookInterface[Any]):
    """Manual pages: as they are in a source distribution, under `share/man` in a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the pages to a distribution, if there are any."""
        folder = Path(self.root, MANUAL)
        if version == "editable" or not folder.is_dir():
            return
        if self.target_name == "wheel":
            build_data["shared_data"][str(folder)] = "share/man"
        else:
            build_data["force_include"][str(folder)] = MANUAL


def absolute(text: str, repository: str, revision: str) -> str:
    """A text whose relative links lead to files of a repository, pictures to their content."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        return f"{found['picture']}[{found['text']}]({repository}/{kind}/{revision}/{found['path']})"

    return _LINK.sub(link, text)
