"""Paths of files and directories, wherever objects have them."""

from __future__ import annotations

from moorage_cluster.apiserver.fields import FieldError, invalid


def may_leave(path: str) -> bool:
    """Whether a path is worth a closer look; nearly none is, and looking closer costs."""
    return path[:1] in "/." or ".." in path


def goes_up(path: str) -> bool:
    """Whether a path has a step to the directory above."""
    return ".." in path and ".." in path.split("/")


def check_no_backsteps(value: str, path: str) -> list[FieldError]:
    """A path that does not go up."""
    return [invalid(path, value, "must not contain '..'")] if goes_up(value) else []


def check_relative_path(value: str, path: str) -> list[FieldError]:
    """A path that stays below where it starts."""
    errors = [invalid(path, value, "must be a relative path")] if value.startswith("/") else []
    return errors + check_no_backsteps(value, path)


def check_file_path(value: str, path: str) -> list[FieldError]:
    """A file's place in a volume."""
    errors = check_relative_path(value, path)
    if value.startswith("..") and not value.startswith("../"):
        errors.append(invalid(path, value, "must not start with '..'"))
    return errors
