"""Validation of paths of files and directories in any object."""

from __future__ import annotations

from moorage.apimachinery.fields import FieldError, invalid


def may_leave(path: str) -> bool:
    """Cheap test of whether a path needs the full checks; nearly none does."""
    return path[:1] in "/." or ".." in path


def goes_up(path: str) -> bool:
    """Whether a path contains a `..` segment."""
    return ".." in path and ".." in path.split("/")


def check_no_backsteps(value: str, path: str) -> list[FieldError]:
    """A path without `..` segments."""
    return [invalid(path, value, "must not contain '..'")] if goes_up(value) else []


def check_relative_path(value: str, path: str) -> list[FieldError]:
    """A relative path that stays below its start."""
    errors = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return errors + check_no_backsteps(value, path)


def check_file_path(value: str, path: str) -> list[FieldError]:
    """The path of a file in a volume."""
    errors = check_relative_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))
    return errors
