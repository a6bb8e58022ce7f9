"""The plugins that `moorage plugin check` checks: those of a file, of a package's folder, or one class."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moorage.config.load import parse_profiles
from moorage.framework.loading.plugin_discovery import GROUP, find_plugins, plugins_in_files
from moorage.framework.loading.registry import Factory, RegistryError
from moorage.plugins import default_registry

_WHAT_TO_GIVE: Final = "give a file FILE.py, the folder of a package, or module:Class"


def plugins_at(target: str) -> list[Factory]:
    """The plugins that PATH, PATH:Class or module:Class names; RegistryError if there are none."""
    path, _, wanted = target.rpartition(":")
    if not path:
        path, wanted = wanted, ""
    if not Path(path).exists():
        if not wanted:
            raise RegistryError(f"{target}: there is no such file or folder; {_WHAT_TO_GIVE}")
        return [_named(target)]
    found: list[Factory] = []
    found += _announced_in(Path(path)) if Path(path).is_dir() else [*plugins_in_files([Path(path)])]
    chosen = [each for each in found if wanted in ("", getattr(each, "__name__", ""), _name(each))]
    if not chosen:
        there = ", ".join(_name(each) for each in found)
        raise RegistryError(f"{path}: there is no plugin {wanted} in it; there is {there}")
    return chosen


def _name(factory: Any) -> str:
    return str(getattr(factory, "name", "") or getattr(factory, "__name__", factory))


def _named(written: str) -> Factory:
    """The class that `module:Class` refers to, as in a configuration."""
    config = parse_profiles([{"plugins": {"multiPoint": {"enabled": [{"name": written}]}}}])
    found = find_plugins(config, default_registry())
    return found.registry[found.config.profiles[0].plugins.multi_point.enabled[-1].name]


def _announced_in(folder: Path) -> list[Factory]:
    """The plugins that a package declares in its pyproject.toml; an installed version is ignored."""
    project = folder / "pyproject.toml"
    try:
        content = tomllib.loads(project.read_text(encoding="utf-8"))
    except OSError as error:
        raise RegistryError(f"{project}: {error.strerror}; {_WHAT_TO_GIVE}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RegistryError(f"{project}: {error}") from None
    announced: Any = content.get("project", {}).get("entry-points", {}).get(GROUP)
    if not isinstance(announced, Mapping) or not announced:
        raise RegistryError(
            f'{project}: it announces no plugin; add [project.entry-points."{GROUP}"] with a line '
            'such as Mine = "my_package:Mine"'
        )
    for source in (folder, folder / "src"):
        if source.is_dir():
            sys.path.insert(0, str(source.absolute()))
    return [_named(str(written)) for written in announced.values()]
