"""`/flagz` and `/statusz`: as text, and as the documents that are asked for."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from moorage.emulation.kubernetes_version import V1_36, V1_37
from moorage.http.transport import Request, Response
from moorage.scheduler.endpoints import page_routes
from moorage.services.responses import Handler
from moorage.services.zpages import flagz_routes, statusz_routes

STARTED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
FLAGS = flagz_routes({"v": "2", "config": "a.yaml"})
STATUS = statusz_routes(
    ["/healthz", "/healthz/ping", "/metrics"],
    V1_36,
    STARTED,
    lambda: STARTED + timedelta(hours=1, seconds=61),
)


def ask(routes: dict[str, Handler], accept: str = "") -> Response:
    [(path, handler)] = routes.items()
    headers = {"accept": accept} if accept else {}
    return asyncio.run(handler(Request("GET", path, headers=headers)))  # type: ignore[arg-type]


def body(response: Response) -> str:
    assert isinstance(response.body, bytes)
    return response.body.decode()


@pytest.mark.parametrize("accept", ["", "text/plain", "*/*", "text/html;q=0.9, */*;q=0.8"])
def test_text_for_people(accept: str) -> None:
    flags = body(ask(FLAGS, accept))
    assert flags.startswith(
        "\nkube-scheduler flagz\nWarning: This endpoint is not meant to be machine parseable"
    )
    assert flags.endswith("config=a.yaml\nv=2\n")
    status = body(ask(STATUS, accept))
    assert "Started: Wed Mar  4 05:06:07 UTC 2026\nUp: 1 hr 01 min 01 sec\n" in status
    assert "Emulation version: 1.36\nPaths: /healthz /metrics\n" in status


def test_documents() -> None:
    asked = "application/json;v=v1beta1;g=config.k8s.io;as="
    assert json.loads(body(ask(FLAGS, f"{asked}Flagz"))) == {
        "kind": "Flagz",
        "apiVersion": "config.k8s.io/v1beta1",
        "metadata": {"name": "kube-scheduler"},
        "flags": {"v": "2", "config": "a.yaml"},
    }
    status = json.loads(body(ask(STATUS, f"text/plain;q=0.1,{asked}Statusz")))
    assert (status["kind"], status["startTime"], status["uptimeSeconds"]) == (
        "Statusz",
        "2026-03-04T05:06:07Z",
        3661,
    )
    assert status["paths"] == ["/healthz", "/metrics"]


def test_an_old_version_is_warned_of() -> None:
    response = ask(FLAGS, "application/yaml;v=v1alpha1;g=config.k8s.io;as=Flagz")
    assert yaml.safe_load(body(response))["apiVersion"] == "config.k8s.io/v1alpha1"
    assert response.headers["Warning"].startswith('299 - "This version of the flagz endpoint is deprecated.')


@pytest.mark.parametrize(
    "accept",
    [
        "application/json",
        "application/json;v=v1beta1;g=config.k8s.io;as=Statusz",
        "application/json;v=v9;g=config.k8s.io;as=Flagz",
        "image/png",
    ],
)
def test_what_is_not_to_be_had(accept: str) -> None:
    response = ask(FLAGS, accept)
    assert response.status == 406
    assert json.loads(body(response))["reason"] == "NotAcceptable"


def test_pages_are_served_if_their_features_are_on() -> None:
    def paths(**gates: bool) -> set[str]:
        return set(page_routes(V1_37.with_gates(gates), {}, [], STARTED))

    assert set(page_routes(V1_37, {}, [], STARTED)) == {"/flagz", "/statusz"}
    assert paths(ComponentFlagz=False) == {"/statusz"}
    assert paths(ComponentFlagz=False, ComponentStatusz=False) == set()
