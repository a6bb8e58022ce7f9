"""The Grafana dashboard `deploy/grafana/moorage.json`, from a list of panels; `make deploy` writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH: Final = 24
"""Columns of Grafana's grid."""
_HEIGHT: Final = 8
"""Height of a panel, in units of Grafana's grid."""
_QUANTILES: Final = (0.5, 0.9, 0.99)


def chosen(*more: str) -> str:
    """A selector of the chosen replicas."""
    return "{" + ", ".join(('job=~"$job"', 'instance=~"$instance"', *more)) + "}"


_ANY: Final = chosen()
_PROFILE: Final = chosen('profile=~"$profile"')


_SCHEDULED: Final = chosen('profile=~"$profile"', 'result="scheduled"')
_BIND: Final = chosen('profile=~"$profile"', 'extension_point="Bind"')
_HIT: Final = chosen('profile=~"$profile"', 'result="hit"')
_NODES, _PODS = chosen('type="nodes"'), chosen('type="pods"')


class Panel(NamedTuple):
    """A panel: queries with their legends, and what they mean."""

    title: str
    description: str
    queries: Sequence[tuple[str, str]]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 8
    is_stacked: bool = False


def quantiles(histogram: str, selector: str) -> list[tuple[str, str]]:
    """Percentiles of a histogram."""
    rates = f"sum by (le) (rate({histogram}_bucket{selector}[$__rate_interval]))"
    return [(f"histogram_quantile({part}, {rates})", f"p{part * 100:g}") for part in _QUANTILES]


def slow(histogram: str, selector: str, *labels: str) -> list[tuple[str, str]]:
    """The 99th percentile of a histogram by labels."""
    by = ", ".join((*labels, "le"))
    rates = f"sum by ({by}) (rate({histogram}_bucket{selector}[$__rate_interval]))"
    return [(f"histogram_quantile(0.99, {rates})", " ".join(f"{{{{{label}}}}}" for label in labels))]


def rate(counter: str, selector: str, *labels: str) -> list[tuple[str, str]]:
    """Events a second by labels."""
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    return [(f"sum by ({', '.join(labels)}) (rate({counter}{selector}[$__rate_interval]))", legend)]


def share(counter: str, part: str, whole: str, *labels: str) -> list[tuple[str, str]]:
    """The share of some events in all, by labels."""
    ((counted, legend),), ((all_of_them, _),) = rate(counter, part, *labels), rate(counter, whole, *labels)
    return [(f"{counted} / {all_of_them}", legend)]


def of_leader(gauge: str, selector: str, *labels: str) -> list[tuple[str, str]]:
    """A gauge without the replicas that wait for the lease, which have a queue of their own."""
    others = f"unless on (job, instance) (leader_election_master_status{_ANY} == 0)"
    legend = " ".join(f"{{{{{label}}}}}" for label in labels)
    return [(f"sum by ({', '.join(labels)}) ({gauge}{selector} {others})", legend)]


ROWS: Final[Sequence[tuple[str, Sequence[Panel]]]] = (
    (
        "Overview",
        (
            Panel("Leader", "Which replica schedules: one has 1.",
                  [(f"leader_election_master_status{_ANY}", "{{instance}}")], kind="stat", width=6),
            Panel("Nodes", "Nodes in the cache.",
                  [(f"max(scheduler_cache_size{_NODES})", "nodes")], kind="stat", width=6),
            Panel("Pods", "Pods on nodes in the cache.",
                  [(f"max(scheduler_cache_size{_PODS})", "pods")], kind="stat", width=6),
            Panel("Running since", "When each replica started.",
                  [(f"process_start_time_seconds{_ANY} * 1000", "{{instance}}")],
                  unit="dateTimeFromNow", kind="stat", width=6),
        ),
    ),
    (
        "Pods",
        (
            Panel("Throughput", "Pods for which a node was found, in a second.",
                  rate("scheduler_schedule_attempts_total", _SCHEDULED, "profile"), unit="ops"),
            Panel("Attempts by result", "An error is a fault, not a pod that does not fit.",
                  rate("scheduler_schedule_attempts_total", _PROFILE, "result"), unit="ops"),
            Panel("How long pods wait", "From the queue to a node, over all attempts.",
                  quantiles("scheduler_pod_scheduling_sli_duration_seconds", _ANY), unit="s"),
            Panel("Waiting pods by queue", "In the leader's queue: unschedulable pods fit no node.",
                  of_leader("scheduler_pending_pods", _ANY, "queue"), is_stacked=True),
            Panel("Unschedulable pods by plugin", "The plugins that refused them; a pod counts for each.",
                  of_leader("scheduler_unschedulable_pods", _PROFILE, "plugin", "profile")),
            Panel("Pods put into the queue", "By the queue and what caused it.",
                  rate("scheduler_queue_incoming_pods_total", _ANY, "queue", "event"), unit="ops"),
            Panel("Attempts that a pod needs", "Pods that got a node.",
                  quantiles("scheduler_pod_scheduling_attempts", _ANY)),
            Panel("Preemption", "Attempts to make room, and pods that had to go.",
                  [(f"sum(rate(scheduler_preemption_attempts_total{_ANY}[$__rate_interval]))", "attempts"),
                   (f"sum(rate(scheduler_preemption_victims_sum{_ANY}[$__rate_interval]))", "victims")],
                  unit="ops"),
            Panel("Permits", "How long pods waited for a permit, by its result.",
                  slow("scheduler_permit_wait_duration_seconds", _ANY, "result"), unit="s"),
        ),
    ),
    (
        "Latency",
        (
            Panel("Attempt", "A pod from the queue to its binding.",
                  quantiles("scheduler_scheduling_attempt_duration_seconds", _PROFILE), unit="s"),
            Panel("Decision", "Finding a node, without binding.",
                  quantiles("scheduler_scheduling_algorithm_duration_seconds", _ANY), unit="s"),
            Panel("Taking in events, p99", "Changes in the cluster.",
                  slow("scheduler_event_handling_duration_seconds", _ANY, "event"), unit="s"),
            Panel("Extension points, p99", "All plugins of an extension point.",
                  slow("scheduler_framework_extension_point_duration_seconds", _PROFILE, "extension_point"),
                  unit="s"),
            Panel("Plugins, p99", "In a sample of the cycles.",
                  slow("scheduler_plugin_execution_duration_seconds", _ANY, "plugin", "extension_point"),
                  unit="s"),
            Panel("Slow calls of outside plugins", "Calls that held the scheduler up.",
                  rate("moorage_slow_plugin_calls_total", _ANY, "plugin", "extension_point"), unit="ops"),
        ),
    ),
    (
        "API server",
        (
            Panel("Requests by answer", "<error>: there was no answer.",
                  rate("rest_client_requests_total", _ANY, "code", "method"), unit="reqps"),
            Panel("Requests, p99", "By method.",
                  slow("rest_client_request_duration_seconds", _ANY, "verb"), unit="s"),
            Panel("Requests sent again", "By answer and method.",
                  rate("rest_client_request_retries_total", _ANY, "code", "verb"), unit="reqps"),
            Panel("Bindings, p99", "The extension point Bind, with its request.",
                  slow("scheduler_framework_extension_point_duration_seconds", _BIND, "profile"), unit="s"),
            Panel("Waiting for the rate limit, p99", "The scheduler's own limit (clientConnection.qps).",
                  slow("rest_client_rate_limiter_duration_seconds", _ANY, "verb"), unit="s"),
            Panel("Changes that wait", "Watched objects that are not taken in yet.",
                  [(f"sum by (resource) (informer_queued_items{_ANY})", "{{resource}}")]),
        ),
    ),
    (
        "Process",
        (
            Panel("Result cache", "Share of cycles whose plugin results were cached.",
                  share("moorage_plugin_result_cache_total", _HIT, _PROFILE, "profile"), unit="percentunit"),
            Panel("Cache", "Nodes, pods and assumed pods.",
                  [(f"max by (type) (scheduler_cache_size{_ANY})", "{{type}}")]),
            Panel("Tasks", "Concurrent pieces of work, by what they do.",
                  [(f"sum by (operation) (scheduler_goroutines{_ANY})", "{{operation}}")]),
            Panel("CPU", "Cores that each replica uses: one at most, but for numeric work.",
                  [(f"rate(process_cpu_seconds_total{_ANY}[$__rate_interval])", "{{instance}}")]),
            Panel("Memory", "Resident, of each replica.",
                  [(f"process_resident_memory_bytes{_ANY}", "{{instance}}")], unit="bytes"),
            Panel("Open files", "Descriptors of each replica, connections included.",
                  [(f"process_open_fds{_ANY}", "{{instance}}")]),
        ),
    ),
)  # fmt: skip


def dashboard() -> str:
    """The dashboard as JSON."""
    document = {
        "title": "moorage",
        "uid": "moorage",
        "description": "A Kubernetes scheduler: its queue, its decisions, its requests and its process.",
        "tags": ["kubernetes", "scheduler", "moorage"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": list(_variables())},
        "panels": list(_panels()),
    }
    return json.dumps(document, indent=2) + "\n"


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    selectors = {
        "job": "scheduler_pending_pods",
        "instance": 'scheduler_pending_pods{job=~"$job"}',
        "profile": 'scheduler_schedule_attempts_total{job=~"$job"}',
    }
    for name, series in selectors.items():
        query = f"label_values({series}, {name})"
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "sort": 1,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }


def _panels() -> Iterator[dict[str, Any]]:
    """Rows with their panels, from left to right and from top to bottom."""
    number, top = 0, 0
    for title, panels in ROWS:
        number += 1
        where = {"x": 0, "y": top, "w": _WIDTH, "h": 1}
        yield {
            "id": number,
            "type": "row",
            "title": title,
            "collapsed": False,
            "gridPos": where,
            "panels": [],
        }
        top, left = top + 1, 0
        for panel in panels:
            if left + panel.width > _WIDTH:
                top, left = top + _HEIGHT, 0
            number += 1
            where = {"x": left, "y": top, "w": panel.width, "h": _HEIGHT}
            yield {"id": number, "gridPos": where, **_content(panel)}
            left += panel.width
        top += _HEIGHT


def _content(panel: Panel) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit}
    legend = {"showLegend": True, "displayMode": "list", "placement": "bottom", "calcs": []}
    options: dict[str, Any] = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "value_and_name"}
    else:
        stacking = {"mode": "normal" if panel.is_stacked else "none"}
        fill = 25 if panel.is_stacked else 0
        defaults["custom"] = {"drawStyle": "line", "fillOpacity": fill, "stacking": stacking}
        defaults["min"] = 0
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _SOURCE, "expr": query, "legendFormat": shown}
            for index, (query, shown) in enumerate(panel.queries)
        ],
    }
