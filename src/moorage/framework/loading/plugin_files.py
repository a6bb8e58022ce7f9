"""Plugin files as modules: one module per file, however it is imported.

Plugin files may import each other, and modules beside them, by name. Such imports and the loading of the
files themselves go through one finder, so that a `StateKey` or a class of a file exists once. Each time files
are loaded, they and the modules beside them are run again, from their source: a compiled version may be older
than the source. Packages beside plugin files are imported once, as usual.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final
from zlib import crc32


class FileError(Exception):
    """A file that cannot be run; `reason` is the error it raised."""

    def __init__(self, path: Path, reason: BaseException) -> None:
        super().__init__(str(path))
        self.path = path
        self.reason = reason


def load_files(paths: Sequence[Path]) -> list[ModuleType]:
    """Files as modules, all of them run again; FileError if one fails: then the modules stay as they were."""
    locations = [_location(path) for path in paths]
    _FINDER.add_import_folder([location.parent for location in locations])
    with _run_again(locations):
        return [_load(path) for path in paths]


def _load(path: Path) -> ModuleType:
    try:
        return importlib.import_module(_FINDER.name_of(_location(path)))
    except (Exception, SystemExit) as error:
        raise FileError(path, error) from error


def files_read(paths: Iterable[Path]) -> list[Path]:
    """Plugin files, and the modules beside them that were imported so far."""
    locations = [_location(path) for path in paths]
    return list(dict.fromkeys((*locations, *_FINDER.beside(locations).values())))


def forget_folders(folders: Iterable[Path]) -> None:
    """Forget all that was loaded from folders, and the folders: files there may be others the next time."""
    for folder in folders:
        _FINDER.forget(folder)


def add_import_folder(folder: Path) -> None:
    """Add a folder to the module search path, after all others."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def _location(path: Path) -> Path:
    return Path(os.path.abspath(path))


@contextmanager
def _run_again(locations: Iterable[Path]) -> Iterator[None]:
    """Within this, files and the modules beside them are imported as if for the first time."""
    former = _take_out(locations)
    try:
        yield
    except BaseException:
        _take_out(locations)
        sys.modules.update(former)
        raise


def _take_out(locations: Iterable[Path]) -> dict[str, ModuleType]:
    """Remove files and the modules beside them from `sys.modules`; returns what was removed."""
    names = _FINDER.beside(locations)
    return {name: module for name in names if (module := sys.modules.pop(name, None)) is not None}


class _Loader(SourceFileLoader):
    """Runs a file, and never a compiled version of it."""

    def get_code(self, fullname: str) -> CodeType:
        """The file's code."""
        file = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(file), file)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run the file, and record that it was loaded here."""
        _FINDER.files[module.__name__] = Path(self.path)
        super().exec_module(module)


class _Finder:
    """Finds the files of folders with plugin files, unless other modules have their names.

    files: what was loaded, by module name.
    """

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}
        self._folders: list[Path] = []
        self._named: dict[str, Path] = {}
        self._added: set[Path] = set()
        """The folders that were added to the module search path."""

    def add_import_folder(self, folders: Iterable[Path]) -> None:
        """Add folders, before those added earlier."""
        self._folders = list(dict.fromkeys((*folders, *self._folders)))
        for folder in self._folders:
            if str(folder) not in sys.path:
                self._added.add(folder)
            add_import_folder(folder)  # For packages and extension modules.
        if self._folders and self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def name_of(self, location: Path) -> str:
        """The module name of a plugin file: the one that `import` resolves to the file, or a unique one."""
        stem = location.stem
        if stem in sys.modules:
            is_this = self.files.get(stem) == location
        else:
            is_this = stem.isidentifier() and self._file_of(stem) == location
        if is_this:
            return stem
        name = f"plugin_{stem}_{crc32(os.fsencode(location)):08x}"
        self._named[name] = location
        return name

    def beside(self, locations: Iterable[Path]) -> dict[str, Path]:
        """What was loaded from the folders of files, by module name."""
        folders = {location.parent for location in locations}
        return {name: file for name, file in self.files.items() if file.parent in folders}

    def forget(self, folder: Path) -> None:
        """Forget a folder, and what was loaded from it."""
        for name in [name for name, file in self.files.items() if file.parent == folder]:
            sys.modules.pop(name, None)
            del self.files[name]
        self._named = {name: file for name, file in self._named.items() if file.parent != folder}
        self._folders = [each for each in self._folders if each != folder]
        if folder in self._added:
            self._added.remove(folder)
            sys.path.remove(str(folder))
            sys.path_importer_cache.pop(str(folder), None)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """The spec of a module, for Python's import system; None: not found here."""
        file = self._named.get(name) or (self._file_of(name) if path is None else None)
        return None if file is None else spec_from_file_location(name, file, loader=_Loader(name, str(file)))

    def _file_of(self, name: str) -> Path | None:
        files = (folder / f"{name}.py" for folder in self._folders)
        file = next((each for each in files if each.is_file()), None)
        if file is None:
            return None
        others = (finder.find_spec(name, None) for finder in sys.meta_path if finder is not self)
        other = next(filter(None, others), None)
        return file if other is None or self._is_beside_plugins(other) else None

    def _is_beside_plugins(self, spec: ModuleSpec) -> bool:
        return bool(spec.has_location and spec.origin and Path(spec.origin).parent in self._folders)


_FINDER: Final = _Finder()
