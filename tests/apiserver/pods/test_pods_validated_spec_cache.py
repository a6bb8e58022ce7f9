"""Pods of one template are judged once, and never wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.kinds.pods import strategy as module
from moorage_cluster.apiserver.kinds.pods.strategy import PodStrategy


def token_volume(name: str) -> dict[str, Any]:
    return {"name": name, "emptyDir": {}}


def pod(*volumes: dict[str, Any], annotations: dict[str, str] | None = None, **container: Any) -> Manifest:
    made: Manifest = {
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1", **container}]},
    }
    if volumes:
        made["spec"]["volumes"] = list(volumes)
    if annotations:
        made["metadata"]["annotations"] = annotations
    PodStrategy().default(made)
    return made


SOUND = pod(token_volume("kube-api-access-aaaaa"))


def judged_again(strategy: PodStrategy, obj: Manifest, monkeypatch: pytest.MonkeyPatch) -> bool:
    calls = []
    whole = module.validate_new_pod  # type: ignore[attr-defined]

    def counted(each: Manifest) -> Any:
        calls.append(each)
        return whole(each)

    monkeypatch.setattr(module, "validate_new_pod", counted)
    strategy.validate(copy(obj))
    return bool(calls)


def test_the_same_spec_is_validated_once_whatever_its_token_volume_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    strategy = PodStrategy()
    assert strategy.validate(copy(SOUND)) == []
    assert not judged_again(strategy, pod(token_volume("kube-api-access-bbbbb")), monkeypatch)


@pytest.mark.parametrize(
    ("other", "problem"),
    [
        (pod(token_volume("kube-api-access-aaaaa"), name="Main"), "spec.containers[0].name"),
        (pod(token_volume("kube-api-access-AAAAA")), "spec.volumes[0].name"),
        (
            pod(token_volume("kube-api-access-aaaaa"), token_volume("kube-api-access-aaaaa")),
            "spec.volumes[1].name",
        ),
    ],
)
def test_what_is_wrong_is_found_after_sound_pods(other: Manifest, problem: str) -> None:
    strategy = PodStrategy()
    assert strategy.validate(copy(SOUND)) == []
    two = pod(token_volume("kube-api-access-aaaaa"), token_volume("kube-api-access-bbbbb"))
    assert strategy.validate(two) == []
    assert [error.path for error in strategy.validate(copy(other))] == [problem]
    assert [error.path for error in strategy.validate(copy(other))] == [problem]


def test_annotations_are_validated_every_time() -> None:
    strategy = PodStrategy()
    assert strategy.validate(copy(SOUND)) == []
    costly = pod(
        token_volume("kube-api-access-ccccc"),
        annotations={"controller.kubernetes.io/pod-deletion-cost": "much"},
    )
    assert [error.detail for error in strategy.validate(costly)] == ["must be a 32bit integer"]


def test_what_depends_on_the_pod_is_validated_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    made = pod({"name": "scratch", "ephemeral": {"volumeClaimTemplate": claim}})
    strategy = PodStrategy()
    assert strategy.validate(copy(made)) == []
    assert judged_again(strategy, made, monkeypatch)


def test_the_memory_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    strategy = PodStrategy()
    assert strategy.validate(copy(SOUND)) == []
    for index in range(1100):
        assert strategy.validate(pod(image=f"registry.example/app:{index}")) == []
    assert judged_again(strategy, SOUND, monkeypatch)


def test_warnings_are_the_same_for_every_pod_of_a_template() -> None:
    strategy = PodStrategy()
    messages = []
    for suffix in ("aaaaa", "bbbbb"):
        made = pod(token_volume(f"kube-api-access-{suffix}"), {"name": "git", "gitRepo": {"repository": "x"}})
        assert strategy.validate(made) == []
        messages.append(strategy.warnings(made, None))
    assert messages[0] == messages[1]
    assert any("gitRepo" in text for text in messages[0])
    other = pod()
    assert strategy.warnings(other, None) == []
