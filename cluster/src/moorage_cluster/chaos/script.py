"""What happens in one run, as data: generated from a seed, written to a file, shortened, run again.

Faults are addressed by what they hit: the third binding of the first scheduler, the tenth event of its watch
of pods. So a script without some of its faults is a script, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from moorage.api.decode import InputError
from moorage.api.manifests import Manifest
from moorage_cluster.chaos.traffic import CLASSES

FORMAT: Final = 1

RequestFaultKind = Literal[
    "unreachable",  # the connection is refused; nothing is sent
    "reset-before",  # the connection breaks before the server has read the request
    "reset-after",  # the request is carried out, and its answer lost
    "twice",  # a proxy sends the request twice; the second answer comes
    "late-request",  # the request reaches the server late
    "late-answer",  # the answer comes late
    "hung",  # no answer comes until the connection is given up
    "stale",  # a list as it was before
    "409",
    "410",
    "429",
    "500",
    "503",
]
WatchFaultKind = Literal[
    "cut",  # the connection breaks between two events
    "cut-in-object",  # the connection breaks in the middle of an event
    "ended-in-object",  # the response ends in the middle of an event
    "ended",  # the server ends the watch
    "half-open",  # nothing comes any more, and the connection stays
    "repeated",  # an older event comes again
    "split",  # an event comes in two pieces
    "late",  # an event comes late
    "410",  # the watch ends because its history is gone
    "idle-bookmark",  # a bookmark with the version that is known already
]
PluginFaultKind = Literal["raise", "hang", "lie", "refuse"]
ExtenderFaultKind = Literal["unreachable", "timeout", "500", "garbage", "error"]


class Create(msgspec.Struct, frozen=True, tag="create", tag_field="do"):
    """A user creates an object."""

    at: float
    manifest: Manifest


class Delete(msgspec.Struct, frozen=True, tag="delete", tag_field="do"):
    """A user deletes an object, if it is there."""

    at: float
    kind: str
    name: str
    namespace: str = ""
    grace_seconds: int | None = None


class Patch(msgspec.Struct, frozen=True, tag="patch", tag_field="do"):
    """A user changes an object, if it is there (merge patch)."""

    at: float
    kind: str
    name: str
    patch: Any
    namespace: str = ""


class RestartServer(msgspec.Struct, frozen=True, tag="restart-server", tag_field="do"):
    """The API server is killed, and started again after some seconds; its watch history is gone."""

    at: float
    seconds: float


class CrashScheduler(msgspec.Struct, frozen=True, tag="crash-scheduler", tag_field="do"):
    """A scheduler process is killed, and started again after some seconds."""

    at: float
    scheduler: int
    seconds: float


class MoveWallClock(msgspec.Struct, frozen=True, tag="move-wall-clock", tag_field="do"):
    """The wall clock of all schedulers jumps; monotonic time does not."""

    at: float
    seconds: float


Operation = Create | Delete | Patch | RestartServer | CrashScheduler | MoveWallClock


class RequestFault(msgspec.Struct, frozen=True, tag="request", tag_field="in"):
    """What happens to one request of a scheduler: the `number`th of its class (traffic.py), from 0."""

    scheduler: int
    request: str
    number: int
    fault: RequestFaultKind
    seconds: float = 0.0


class WatchFault(msgspec.Struct, frozen=True, tag="watch", tag_field="in"):
    """What happens to one event of a scheduler's watches of a resource: the `number`th, from 0."""

    scheduler: int
    resource: str
    number: int
    fault: WatchFaultKind
    seconds: float = 0.0


class PluginFault(msgspec.Struct, frozen=True, tag="plugin", tag_field="in"):
    """What a plugin does in its `number`th call at an extension point, from 0."""

    scheduler: int
    point: str
    number: int
    fault: PluginFaultKind
    seconds: float = 0.0


class ExtenderFault(msgspec.Struct, frozen=True, tag="extender", tag_field="in"):
    """What an extender does in its `number`th call, from 0."""

    number: int
    fault: ExtenderFaultKind


Fault = RequestFault | WatchFault | PluginFault | ExtenderFault


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """One run."""

    scenario: str
    seed: int
    schedulers: int = 1
    """Number of scheduler processes; with two, they elect a leader."""
    has_groups: bool = False
    """Whether the gates of groups of pods are on."""
    has_watch_lists: bool = True
    """Whether the server has watch-lists; without, informers list and watch."""
    has_plugin: bool = False
    """Whether the misbehaving plugin is enabled."""
    has_extender: bool = False
    """Whether there is an extender."""
    has_volumes: bool = False
    """Whether a controller binds claims to volumes."""
    has_budgets: bool = False
    """Whether a controller keeps disruption budgets up to date, and evictions are judged by them."""
    is_durable: bool = False
    """Whether the server has a data directory."""
    history: int = 20_000
    """Number of past changes from which a watch can start."""
    calm_at: float
    """When the last fault may happen, in seconds."""
    objects: tuple[Manifest, ...] = ()
    """What is there at the start."""
    operations: tuple[Operation, ...] = ()
    """What users and machines do, in the order of time."""
    faults: tuple[Fault, ...] = ()
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Number of things that happen."""
        return len(self.operations) + len(self.faults)


def write_script(script: Script, path: Path) -> None:
    """Write a script to a file, to be read and to be run again."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(script)) + b"\n")


def read_script(path: Path) -> Script:
    """A script from a file; InputError if it is none."""
    try:
        script = msgspec.json.decode(path.read_bytes(), type=Script)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}") from None
    except msgspec.MsgspecError as error:
        raise InputError(str(path), f"not a chaos script: {error}") from None
    if script.format != FORMAT:
        raise InputError(str(path), f"format {script.format}: this version reads format {FORMAT}")
    for fault in script.faults:
        if isinstance(fault, RequestFault) and fault.request not in CLASSES:
            raise InputError(
                str(path), f"there is no request {fault.request!r}; there are {', '.join(CLASSES)}"
            )
        if not isinstance(fault, ExtenderFault) and fault.scheduler not in range(script.schedulers):
            raise InputError(str(path), f"there is no scheduler {fault.scheduler}: the first one is 0")
    return script
