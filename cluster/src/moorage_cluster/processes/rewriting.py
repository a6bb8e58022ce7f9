"""Rewriting of a container's paths and addresses in a pod's spec to those of this machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_LOCAL: Final = r"(?<![\d.])(?:0\.0\.0\.0|127\.0\.0\.1)(?![\d.])|\[::1?\]"
_BEFORE_PATH: Final = r"(?<![\w./-])"
_AFTER_PATH: Final = r"(?![\w.-])"


class Rewriting:
    """Replaces mount paths by the directories of their volumes, and local addresses by the pod's own.

    paths: directories by mount path. address: empty if the pod uses the machine's network.
    """

    def __init__(self, paths: Mapping[str, Path], address: str) -> None:
        self._paths = {path.rstrip("/"): str(target) for path, target in paths.items() if path.rstrip("/")}
        self._address = address
        longest_first = sorted(self._paths, key=len, reverse=True)
        mounts = "|".join(map(re.escape, longest_first))
        patterns = [f"(?P<path>{_BEFORE_PATH}(?:{mounts}){_AFTER_PATH})"] if mounts else []
        patterns += [_LOCAL] if address else []
        self._pattern = re.compile("|".join(patterns)) if patterns else None

    def __call__(self, text: str) -> str:
        """Rewrite a word of a command, or the value of a variable."""
        return text if self._pattern is None else self._pattern.sub(self._replacement, text)

    def _replacement(self, match: re.Match[str]) -> str:
        return self._paths.get(match[0], self._address)
