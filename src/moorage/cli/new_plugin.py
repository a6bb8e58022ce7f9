"""A new package with a plugin: its files and names."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from moorage.api.decode import InputError
from moorage.plugins import default_registry
from moorage.version import __version__

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MAX_CHARACTERS: Final = 63
"""Maximum length of the name, which is also a scheduler's name in pods and leases."""

_FILES: Final[Mapping[str, str]] = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    "scheduler.yaml": "scheduler.yaml.txt",
    "src/{module}/__init__.py": "init.py.txt",
    "src/{module}/plugin.py": "plugin.py.txt",
    "tests/test_plugin.py": "test_plugin.py.txt",
}
"""Path of each file, and its template."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the package, its module and its plugin."""

    package: str
    module: str
    plugin: str

    @property
    def label(self) -> str:
        """The node label that the plugin reads."""
        return f"example.com/{self.package}"


def names_from(package: str) -> Names:
    """The names derived from a package's; InputError if it is invalid."""
    if not _NAME.fullmatch(package) or len(package) > _MAX_CHARACTERS:
        suggested = "-".join(re.findall("[a-z0-9]+", re.sub("(?<=[a-z0-9])(?=[A-Z])", "-", package).lower()))
        hint = f"; {suggested}, perhaps?" if _NAME.fullmatch(suggested) else ""
        raise InputError(
            repr(package),
            f"a name is made of lower-case letters, digits and hyphens, and begins with a letter{hint}",
        )
    module = package.replace("-", "_")
    if keyword.iskeyword(module) or module in sys.stdlib_module_names or module == "moorage":
        raise InputError(repr(package), "Python has that name for something else; choose another one")
    plugin = "".join(word.capitalize() for word in package.split("-"))
    if plugin in default_registry():
        raise InputError(repr(package), f"there is a plugin named {plugin} already; choose another name")
    return Names(package, module, plugin)


def write_package(names: Names, folder: Path) -> list[Path]:
    """Write the package into a new folder; returns its files."""
    if folder.exists():
        raise InputError(str(folder), "exists already; choose another name, or remove it")
    written = []
    for place, source in _FILES.items():
        path = folder / place.format(module=names.module)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_filled(source, names), encoding="utf-8")
        except OSError as error:
            raise InputError(str(path), f"cannot be written: {error.strerror}") from None
        written.append(path)
    return written


def _filled(source: str, names: Names) -> str:
    text = files("moorage.cli").joinpath("plugin_template", source).read_text(encoding="utf-8")
    return Template(text).substitute(
        package=names.package,
        module=names.module,
        plugin=names.plugin,
        label=names.label,
        moorage_version=__version__,
    )
