"""What a configuration says: shapes, limits, times and the web service."""

from __future__ import annotations

from typing import Literal

from moorage import Duration, InputError, Quantity, Shape, Struct, check_shapes


class WebhookArgs(Struct, forbid_unknown_fields=True):
    """The web service that is asked for nodes."""

    url: str
    ca_file: str = ""
    timeout: Duration = Duration(10)


class NodeRequestArgs(Struct):
    """The arguments of NodeRequest."""

    shapes: tuple[Shape, ...]
    choice: Literal["LeastCost", "LeastWaste"] = "LeastCost"
    max_nodes: int | None = None
    """Number of nodes of the cluster; None: any."""
    max_resources: dict[str, Quantity] = {}
    """What all nodes of the cluster have together, by resource."""
    batch_window: Duration = Duration(1)
    provisioning_delay: Duration = Duration(60)
    provisioning_timeout: Duration = Duration(900)
    cool_down: Duration = Duration(60)
    initial_backoff: Duration = Duration(30)
    max_backoff: Duration = Duration(1800)
    webhook: WebhookArgs | None = None

    def __post_init__(self) -> None:
        try:
            check_shapes(self.shapes, "")
        except InputError as error:
            raise ValueError(str(error).removeprefix(": ")) from None
        if self.max_nodes is not None and self.max_nodes < 0:
            raise ValueError(f"maxNodes: {self.max_nodes}: expected a number of at least 0")
        for name in ("batch_window", "provisioning_delay", "cool_down"):
            _check_at_least_zero(name, getattr(self, name))
        for name in ("provisioning_timeout", "initial_backoff", "max_backoff"):
            _check_positive(name, getattr(self, name))
        if self.max_backoff < self.initial_backoff:
            raise ValueError("maxBackoff: shorter than initialBackoff")
        if self.webhook is not None:
            _check_positive("webhook.timeout", self.webhook.timeout)


def _check_at_least_zero(name: str, duration: Duration) -> None:
    if duration < 0:
        raise ValueError(f"{_camel(name)}: {duration} is negative")


def _check_positive(name: str, duration: Duration) -> None:
    if duration <= 0:
        raise ValueError(f"{_camel(name)}: {duration}: expected a duration above 0")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))
