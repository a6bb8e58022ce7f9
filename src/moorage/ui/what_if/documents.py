"""The documents of what-if, described in docs/reference/page-api.md."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from moorage.api.base import Struct
from moorage.ui.what_if.changes import Change

MAX_CHANGES: Final = 50
MAX_KEY_CHARACTERS: Final = 2 * 253 + 1
"""Maximum length of a namespace and a name."""
MAX_TEXT_CHARACTERS: Final = 256 * 1024
"""Maximum length of a pod or a configuration."""


class WhatIf(Struct, forbid_unknown_fields=True):
    """A question: what if the pod, the configuration or the cluster were another one?"""

    of: Annotated[str, Meta(max_length=MAX_KEY_CHARACTERS)] = ""
    """`namespace/name` of a pod in the cluster; empty: the pod that is given is new."""
    pod: str | None = None
    """The pod as YAML; None: as it is in the cluster."""
    config: str | None = None
    """The configuration as YAML; None: the one in force."""
    changes: tuple[Change, ...] = ()


class Texts(Struct, forbid_unknown_fields=True):
    """Texts to be validated."""

    pod: str | None = None
    config: str | None = None


class TextProblem(Struct, omit_defaults=True):
    """What is wrong with a text, and where."""

    message: str
    path: str = ""
    line: int | None = None
    of: str = ""
    """`pod` or `config`."""


class Problems(Struct, omit_defaults=False):
    """All that is wrong with texts."""

    problems: tuple[TextProblem, ...] = ()


class Text(Struct, omit_defaults=False):
    """A text to be edited."""

    text: str


class BeforeAfter(Struct, omit_defaults=False):
    """A value now, and then."""

    before: Any
    after: Any


class ReasonDifference(Struct, omit_defaults=False):
    """How many nodes a plugin rejects for a reason, now and then."""

    plugin: str
    reasons: tuple[str, ...]
    before: int
    after: int


class ScoreDifference(Struct, omit_defaults=False):
    """A plugin's weight, and its weighted scores of the nodes that the pod would have now and then."""

    plugin: str
    weight: BeforeAfter
    nodes: dict[str, BeforeAfter]


class OtherPod(Struct, omit_defaults=False):
    """Another pod without a node, or one that loses its own: how many nodes pass its filters."""

    pod: str
    node: str
    """The node that it is on now."""
    before: int
    after: int


class OtherPods(Struct, omit_defaults=False):
    """Other pods that a changed cluster or configuration affects, each evaluated alone."""

    total: int
    evaluated: int
    items: tuple[OtherPod, ...]
    """Those that fit now and not then, or the reverse, and those that lose their node."""


class Differences(Struct, omit_defaults=False):
    """What is different then."""

    node: BeforeAfter
    """The node that the pod would be placed on."""
    is_equally_good: bool
    """Whether the present node is as good as the other one then: the choice between them is random."""
    feasible: BeforeAfter
    """Number of nodes that pass all filters."""
    opened: tuple[str, ...]
    """Nodes that pass only then."""
    closed: tuple[str, ...]
    reasons: tuple[ReasonDifference, ...]
    scores: tuple[ScoreDifference, ...]
    others: OtherPods | None
    """None: neither the cluster nor the configuration is changed."""


class Answer(Struct, omit_defaults=False):
    """The pod now and then; or what is wrong with the texts."""

    now: dict[str, Any] | None = None
    then: dict[str, Any] | None = None
    differences: Differences | None = None
    problems: tuple[TextProblem, ...] = ()
