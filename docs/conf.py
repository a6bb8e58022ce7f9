"""Sphinx's configuration for the site that `make docs` builds."""

from __future__ import annotations

import tomllib
from pathlib import Path

_ROOT = Path(__file__).parent.parent
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]

project = "moorage"
author = "the authors of moorage"
copyright = author
version = release = _PROJECT["version"]

extensions = ["myst_parser"]
root_doc = "index"
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 6
# Output that is shortened (`…`) is not JSON any more, and GitHub knows `csv`, which Pygments does not.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"moorage {release}"
html_static_path = [str(_ROOT / "docs" / "_static")]
html_css_files = ["site.css"]
html_favicon = "_static/logo.svg"
html_logo = "_static/logo.svg"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "footer_icons": [
        {"name": "Repository", "url": _PROJECT["urls"]["Source"], "html": "Repository", "class": ""}
    ],
}
pygments_style = "friendly"
pygments_dark_style = "github-dark"
