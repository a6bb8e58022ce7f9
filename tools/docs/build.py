"""One build of the site: pages to a folder, then Sphinx over it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from sphinx.cmd.build import build_main

from tools.docs import reference, sources

ROOT: Final = Path(__file__).parent.parent.parent


def build(output: Path, pages: Path) -> int:
    """Build the site from the repository, with its pages in between; Sphinx's exit status.

    Warnings are errors. What has not changed since the last build is not built again.
    """
    generated = {f"{sources.GENERATED}/{name}.md": text for name, text in reference.pages().items()}
    sources.write(sources.collect(ROOT, generated), pages)
    doctrees = output.with_name(f"{output.name}-doctrees")
    words = ["-b", "html", "-c", str(ROOT / "docs"), "-d", str(doctrees), "--fail-on-warning", "--nitpicky"]
    return build_main([*words, "--quiet", str(pages), str(output)])
