"""The QoS class of a pod is that which an API server writes into its status."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.admission.pods.resources import qos_class as qos_of_manifest
from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.qos import QOSClass, qos_class

BOTH = {"cpu": "1", "memory": "1Gi"}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    named = [{"name": f"c{index}", "resources": each} for index, each in enumerate(containers)]
    return {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": named, **spec}}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(pod({}), "BestEffort", id="nothing requested"),
        pytest.param(pod({"requests": {"cpu": "0"}}), "BestEffort", id="zero is nothing"),
        pytest.param(pod({"requests": {"example.com/gpu": "1"}}), "BestEffort", id="other resources"),
        pytest.param(pod({"requests": BOTH, "limits": BOTH}), "Guaranteed", id="limits as requested"),
        pytest.param(pod({"requests": BOTH}), "Burstable", id="no limits"),
        pytest.param(pod({"requests": BOTH, "limits": BOTH}, {}), "Burstable", id="one container without"),
        pytest.param(pod({"requests": {"cpu": "1"}, "limits": BOTH}), "Burstable", id="memory not requested"),
        pytest.param(pod({}, resources={"requests": BOTH, "limits": BOTH}), "Guaranteed", id="whole pod"),
        pytest.param(pod({"requests": BOTH, "limits": BOTH}, resources={}), "BestEffort", id="pod's win"),
    ],
)
def test_classes(manifest: dict[str, Any], expected: str) -> None:
    assert qos_class(convert(manifest, Pod)) == expected == qos_of_manifest(manifest)


AMOUNTS = st.dictionaries(
    st.sampled_from(("cpu", "memory", "example.com/gpu")), st.sampled_from(("0", "1", "2"))
)
RESOURCES = st.fixed_dictionaries({}, optional={"requests": AMOUNTS, "limits": AMOUNTS})


@given(st.lists(RESOURCES, min_size=1, max_size=3), st.lists(RESOURCES, max_size=2), st.none() | RESOURCES)
def test_pods_and_manifests_agree(containers: list[Any], init: list[Any], whole: Any) -> None:
    manifest = pod(
        *containers, initContainers=[{"name": f"i{i}", "resources": each} for i, each in enumerate(init)]
    )
    if whole is not None:
        manifest["spec"]["resources"] = whole
    assert QOSClass(qos_of_manifest(manifest)) is qos_class(convert(manifest, Pod))
