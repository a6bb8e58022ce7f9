"""Pages with results, that need nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

PARTIAL: Final = '<p class="partial">Interrupted: the results are those up to then.</p>'
_PAGE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{style}</style>
</head>
<body><h1>{title}</h1>
{body}
</body>
</html>
"""
_STYLE: Final = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 1rem 0.2rem 0; vertical-align: top; }
figure { margin: 2rem 0; } svg { max-width: 100%; }
.bar { background: #326ce5; height: 0.8rem; display: inline-block; }
.partial { border-left: 4px solid #b3261e; padding-left: 1rem; }
"""


def page(title: str, sections: Iterable[str]) -> str:
    """A page with those sections that are not empty."""
    body = "\n".join(each for each in sections if each)
    return _PAGE.format(title=escape(title), style=_STYLE, body=body)


def figure(caption: str, content: str) -> str:
    """A plot with a caption."""
    return f"<figure><figcaption><strong>{escape(caption)}</strong></figcaption>{content}</figure>"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text."""
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in header)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
