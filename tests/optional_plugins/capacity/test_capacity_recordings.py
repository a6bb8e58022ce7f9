"""Recordings of a scheduler with Capacity: quotas in them are quotas."""

from __future__ import annotations

from moorage.sim.recording import ChangeStep, parse_recording

_QUOTA = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "ElasticQuota",
    "metadata": {"name": "quota", "namespace": "red"},
    "spec": {"min": {"cpu": "2"}},
}
_GROUP = {**_QUOTA, "kind": "PodGroup", "spec": {"minMember": 2}}
_PROFILE = {
    "schedulerName": "default-scheduler",
    "plugins": {
        "multiPoint": {"enabled": [{"name": "Capacity"}], "disabled": [{"name": "DefaultPreemption"}]}
    },
}


def test_a_recording_has_quotas_and_groups_of_the_same_api_group() -> None:
    document = {
        "config": {"profiles": [_PROFILE]},
        "objects": [_QUOTA, _GROUP],
        "steps": [{"replace": [_QUOTA]}],
        "everyAttempt": True,
    }
    recording = parse_recording(document, "recording.json")
    (step,) = recording.steps
    assert isinstance(step, ChangeStep)
    assert [type(each).__name__ for each in recording.objects] == ["ElasticQuota", "PodGroup"]
    assert [type(each).__name__ for each in step.put] == ["ElasticQuota"]
