"""kubeconfig files: found, merged, and one context selected.

Of several files the first value takes precedence, as in kubectl. Paths in a file are relative to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from moorage.api.yaml_reading import YamlError, load_yaml
from moorage.http.errors import KubeconfigError

_PATHS: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
_LISTS: Final = ("clusters", "users", "contexts")

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class KubeconfigContext:
    """The cluster, user and namespace of a context."""

    cluster: Entry = field(default_factory=dict)
    user: Entry = field(default_factory=dict)
    namespace: str = ""
    """The namespace for commands that name none; empty: `default`."""


def kubeconfig_paths(environ: Mapping[str, str]) -> list[Path]:
    """The files that kubectl reads: those in `KUBECONFIG`, or the one in the home directory."""
    named = [Path(path) for path in environ.get("KUBECONFIG", "").split(":") if path]
    return named or [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def choose(paths: Sequence[Path], context: str = "") -> KubeconfigContext:
    """The cluster and the user of a context; default: the current one."""
    found: dict[str, dict[str, Entry]] = {kind: {} for kind in _LISTS}
    current = context
    missing = [path for path in paths if not path.exists()]
    if len(missing) == len(paths):
        raise KubeconfigError(f"there is no kubeconfig at {missing[0]}")
    for path in paths:
        if path not in missing:
            content = _read(path)
            current = current or _text(content, "current-context")
            for kind in _LISTS:
                for name, entry in _entries(content, kind, path):
                    found[kind].setdefault(name, entry)
    file = str(next(path for path in paths if path not in missing))
    if not current:
        raise KubeconfigError(f"{file} has no current context, and none was named")
    if current not in found["contexts"]:
        raise KubeconfigError(f"{file} has no context {current!r}")
    chosen = found["contexts"][current]
    cluster, user = _text(chosen, "cluster"), _text(chosen, "user")
    if cluster not in found["clusters"]:
        raise KubeconfigError(f"{file}: context {current!r} names cluster {cluster!r}, which does not exist")
    if user and user not in found["users"]:
        raise KubeconfigError(f"{file}: context {current!r} names user {user!r}, which does not exist")
    return KubeconfigContext(
        found["clusters"][cluster], found["users"].get(user, {}), _text(chosen, "namespace")
    )


def _read(path: Path) -> Entry:
    try:
        content = load_yaml(path.read_text())
    except OSError as error:
        raise KubeconfigError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError:
        raise KubeconfigError(f"{path} is not YAML: not UTF-8 text") from None
    except YamlError as error:
        raise KubeconfigError(f"{path} is not YAML: {error}") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise KubeconfigError(f"{path} is not a kubeconfig")
    return content


def _entries(content: Entry, kind: str, path: Path) -> list[tuple[str, Entry]]:
    entries = content.get(kind) or []
    inner = kind[:-1]
    try:
        named = [(str(entry["name"]), dict(entry.get(inner) or {})) for entry in entries]
    except (TypeError, KeyError, ValueError, AttributeError):
        raise KubeconfigError(f"{path}: {kind} is not a list of named entries") from None
    for _, entry in named:
        for key in _PATHS:
            if entry.get(key):
                entry[key] = str(path.parent / entry[key])
        command = entry.get("exec")
        if isinstance(command, dict) and "/" in str(command.get("command", "")):
            entry["exec"] = {**command, "command": str(path.parent / command["command"])}
    return named


def _text(entry: Entry, key: str) -> str:
    value = entry.get(key)
    return "" if value is None else str(value)
