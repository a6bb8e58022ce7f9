"""What version 0.1.0 has left is taken over: objects, revisions, managed fields, credentials, the lease.

`tests/upgrade/state.py` says how it was made.
"""

from __future__ import annotations

import base64
import json
import re
import tarfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.run.running import RunningScheduler
from tests.up.objects import pod
from tests.up.running import TIMEOUT_SECONDS
from tests.upgrade.state import APPLIED, DIRECTORY, HERE, MANAGER, NAMESPACE, SHOWN, Manifest, shown

ARCHIVE = HERE / "data" / "0.1.0.tar.gz"
Key = tuple[str, str, str]
OWN_ADDRESS = {
    ("Endpoints", "default", "kubernetes"),
    ("EndpointSlice", "default", "kubernetes"),
}
"""What each start of a server writes anew."""
LEASE = ("Lease", "kube-system", "kube-scheduler")
LOG_TIME = re.compile(r"[A-Z]\d{4} (\S+)")


class TakenOver(NamedTuple):
    """A server of this version with the data directory of the older one."""

    server: RunningServer
    kubectl: Kubectl
    folder: Path
    before: dict[Key, Manifest]
    """What the older server showed before it ended."""
    after: dict[Key, Manifest]
    """What this one shows after its start."""

    @property
    def user(self) -> Kubectl:
        """kubectl in the namespace of the workload."""
        return self.kubectl.with_options("--namespace", NAMESPACE)


@pytest.fixture(scope="module")
def taken_over(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TakenOver]:
    folder = tmp_path_factory.mktemp("upgrade")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="tar")
    with start_server(folder, "--data-dir", str(folder / DIRECTORY)) as server:
        kubectl = Kubectl(server, folder)
        before = by_key(json.loads((folder / SHOWN).read_text()))
        yield TakenOver(server, kubectl, folder, before, by_key(shown(kubectl)))


def by_key(objects: list[Manifest]) -> dict[Key, Manifest]:
    """Objects by kind, namespace and name."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in objects
    }


def version(obj: Manifest) -> int:
    return int(obj["metadata"]["resourceVersion"])


def test_every_object_is_what_it_was(taken_over: TakenOver) -> None:
    kept = taken_over.before.keys() - OWN_ADDRESS
    kinds = {"Pod", "Secret", "Berth", "Deployment", "DeviceClass", "Role", "PodDisruptionBudget"}

    assert len(kept) > 60
    assert kinds <= {kind for kind, _, _ in kept}
    assert {key: taken_over.after[key] for key in kept} == {key: taken_over.before[key] for key in kept}
    assert taken_over.after.keys() == taken_over.before.keys()


def test_revisions_go_on(taken_over: TakenOver) -> None:
    last = max(map(version, taken_over.before.values()))
    taken_over.user("create", "configmap", "new")
    created = taken_over.user.json("get", "configmap", "new")
    assert version(created) > last


def test_what_was_read_before_can_be_written_once(taken_over: TakenOver) -> None:
    read = taken_over.before["ConfigMap", NAMESPACE, "tides"]
    assert version(read) == version(taken_over.after["ConfigMap", NAMESPACE, "tides"])
    changed = json.dumps({**read, "data": {"high": "07:30"}})
    taken_over.user("replace", "-f", "-", input=changed)
    refused = taken_over.user("replace", "-f", "-", input=changed, ok=False)
    assert "the object has been modified" in refused


def test_a_watch_from_before_has_to_list_again(taken_over: TakenOver) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    since = version(taken_over.before["ConfigMap", NAMESPACE, "tides"])
    refused = taken_over.kubectl("get", "--raw", f"{path}?watch=1&resourceVersion={since}", ok=False)
    assert f"(Expired): too old resource version: {since}" in refused


def test_a_watch_goes_on_if_it_has_seen_all(taken_over: TakenOver) -> None:
    since = max(map(version, taken_over.before.values()))
    namespaces = f"/api/v1/namespaces?watch=1&timeoutSeconds=1&resourceVersion={since}"
    assert taken_over.kubectl("get", "--raw", namespaces) == ""


def test_managers_of_fields_keep_them(taken_over: TakenOver) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    first, berth = yaml.safe_load_all(APPLIED.read_text())
    changed = {**first, "data": {"mine": "2"}}
    refused = taken_over.user(*apply, "--field-manager=other", input=json.dumps(changed), ok=False)
    assert f'conflict with "{MANAGER}": .data.mine' in refused
    taken_over.user(*apply, f"--field-manager={MANAGER}", input=json.dumps(changed))
    assert taken_over.user.json("get", "configmap", "applied")["data"] == {"mine": "2"}
    metres = json.dumps({**berth, "spec": {"metres": 12}})
    refused = taken_over.user(*apply, "--field-manager=other", input=metres, ok=False)
    assert f'conflict with "{MANAGER}": .spec.metres' in refused


def test_custom_resources_are_validated_by_the_old_definition(taken_over: TakenOver) -> None:
    _, berth = yaml.safe_load_all(APPLIED.read_text())
    wrong = json.dumps({**berth, "metadata": {"name": "wrong"}, "spec": {"metres": "many"}})
    assert 'spec.metres: Invalid value: "string"' in taken_over.user(
        "create", "-f", "-", input=wrong, ok=False
    )


def test_a_deletion_that_had_begun_ends_with_its_last_finalizer(taken_over: TakenOver) -> None:
    leaving = taken_over.before["ConfigMap", NAMESPACE, "leaving"]
    assert leaving["metadata"]["deletionTimestamp"]
    no_finalizers = json.dumps({"metadata": {"finalizers": None}})
    taken_over.user("patch", "configmap", "leaving", "--type=merge", "--patch", no_finalizers)
    assert "not found" in taken_over.user("get", "configmap", "leaving", ok=False)


def test_credentials_are_the_same(taken_over: TakenOver) -> None:
    directory = taken_over.folder / DIRECTORY
    with tarfile.open(ARCHIVE) as archive:
        old = {
            name: file.read()
            for name in ("ca.crt", "token", "service-account.key")
            if (file := archive.extractfile(f"{DIRECTORY}/{name}")) is not None
        }
    assert {name: (directory / name).read_bytes() for name in old} == old
    config = yaml.safe_load(taken_over.server.kubeconfig.read_text())
    assert base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]) == old["ca.crt"]
    assert config["users"][0]["user"]["token"] == old["token"].decode()


def logged_at(line: str) -> datetime:
    """The time of a line of the log."""
    found = LOG_TIME.match(line)
    assert found, line
    return datetime.strptime(found[1], "%H:%M:%S.%f")


def test_a_scheduler_takes_over_the_lease_when_it_has_expired(taken_over: TakenOver) -> None:
    before = taken_over.before[LEASE]
    held, duration = before["spec"]["holderIdentity"], before["spec"]["leaseDurationSeconds"]
    assert held, "the older scheduler was killed while it led"
    with RunningScheduler(taken_over.server.kubeconfig, leads=False) as scheduler:
        tried = logged_at(scheduler.says("Attempting to acquire leader lease"))
        assert held in scheduler.says("New leader elected")
        acquired = logged_at(scheduler.says("Successfully acquired lease"))
        assert (acquired - tried) % timedelta(days=1) >= timedelta(seconds=duration)

        now = taken_over.kubectl.json("get", "lease", "kube-scheduler", "--namespace=kube-system")
        assert now["metadata"]["uid"] == before["metadata"]["uid"]
        assert now["spec"].keys() == before["spec"].keys()
        assert now["spec"]["leaseTransitions"] == before["spec"]["leaseTransitions"] + 1
        assert now["spec"]["holderIdentity"] not in ("", held)

        taken_over.user.create(pod("later", cpu="2500m"), pod("too-late", cpu="2500m"))
        taken_over.user("wait", "pod/later", "--for=condition=PodScheduled", TIMEOUT_SECONDS)
        taken_over.user("wait", "pod/too-late", "--for=condition=PodScheduled=false", TIMEOUT_SECONDS)
    bound = taken_over.before["Pod", NAMESPACE, "bound"]
    assert taken_over.user.json("get", "pod", "bound")["metadata"]["uid"] == bound["metadata"]["uid"]
    assert taken_over.user.json("get", "pod", "later")["spec"]["nodeName"] == bound["spec"]["nodeName"]
