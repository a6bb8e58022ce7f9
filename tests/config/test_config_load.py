"""Loading: versions, strictness, files, and the way back to a manifest."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from moorage.api.decode import InputError
from moorage.config.duration import Duration
from moorage.config.load import (
    ConfigError,
    default_config,
    dump_yaml,
    load_config,
    parse_config,
    parse_profiles,
    read_document,
    to_manifest,
)
from moorage.config.types import (
    API_VERSION,
    KIND,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    SchedulerConfiguration,
)

CONVERT = "run `moorage config convert FILE` to get a file of this version"


def document(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": KIND, **fields}


def problems(value: Any) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_config(value)
    return list(caught.value.problems)


FULL = document(
    parallelism=4,
    leaderElection={
        "leaderElect": False,
        "leaseDuration": "1m30s",
        "renewDeadline": "1m",
        "retryPeriod": "1.5s",
        "resourceLock": "leases",
        "resourceName": "mine",
        "resourceNamespace": "here",
    },
    clientConnection={
        "kubeconfig": "/etc/kubeconfig",
        "acceptContentTypes": "application/json",
        "contentType": "application/json",
        "qps": 12.5,
        "burst": 7,
    },
    enableProfiling=True,
    enableContentionProfiling=False,
    percentageOfNodesToScore=40,
    podInitialBackoffSeconds=3,
    podMaxBackoffSeconds=30,
    delayCacheUntilActive=True,
    profiles=[
        {
            "schedulerName": "one",
            "percentageOfNodesToScore": 50,
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "Mine", "weight": 3}, {"name": "NodeAffinity", "weight": 9}],
                    "disabled": [{"name": "ImageLocality"}],
                },
                "score": {
                    "disabled": [{"name": "*"}],
                    "enabled": [{"name": "NodeResourcesFit", "weight": 4}],
                },
                "placementScore": {"enabled": [{"name": "Mine", "weight": 2}]},
            },
            "pluginConfig": [
                {"name": "Mine", "args": {"list": [1, None, {"deep": "yes"}], "none": None, "empty": {}}},
                {"name": "Silent"},
                {
                    "name": "NodeAffinity",
                    "args": {
                        "apiVersion": API_VERSION,
                        "kind": "NodeAffinityArgs",
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                                ]
                            },
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 2,
                                    "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                                }
                            ],
                        },
                    },
                },
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {
                                "maxSkew": 1,
                                "topologyKey": "zone",
                                "whenUnsatisfiable": "DoNotSchedule",
                                "minDomains": 2,
                                "nodeTaintsPolicy": "Honor",
                            }
                        ],
                    },
                },
                {"name": "DynamicResources", "args": {"filterTimeout": "250ms", "bindingTimeout": "1h"}},
            ],
        },
        {"schedulerName": "two"},
    ],
    extenders=[
        {
            "urlPrefix": "https://extender.example.com",
            "filterVerb": "filter",
            "preemptVerb": "preempt",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "bindVerb": "bind",
            "enableHTTPS": True,
            "httpTimeout": "3s",
            "nodeCacheCapable": True,
            "ignorable": True,
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            "tlsConfig": {
                "insecure": False,
                "serverName": "extender",
                "certFile": "/c",
                "keyFile": "/k",
                "caFile": "/ca",
                "certData": base64.b64encode(b"cert").decode(),
                "keyData": base64.b64encode(b"key").decode(),
                "caData": base64.b64encode(b"ca").decode(),
            },
        }
    ],
)


def test_every_field_is_read() -> None:
    config = parse_config(FULL)
    assert config.parallelism == 4
    assert config.leader_election.leader_elect is False
    assert config.leader_election.lease_duration == 90
    assert config.leader_election.retry_period == Duration(1.5)
    assert (config.leader_election.resource_name, config.leader_election.resource_namespace) == (
        "mine",
        "here",
    )
    assert (config.client_connection.qps, config.client_connection.burst) == (12.5, 7)
    assert config.client_connection.accept_content_types == "application/json"
    assert (config.enable_profiling, config.enable_contention_profiling) == (True, False)
    assert config.delay_cache_until_active is True
    assert config.extenders == (
        Extender(
            url_prefix="https://extender.example.com",
            filter_verb="filter",
            preempt_verb="preempt",
            prioritize_verb="prioritize",
            weight=5,
            bind_verb="bind",
            enable_https=True,
            http_timeout=Duration(3),
            node_cache_capable=True,
            ignorable=True,
            managed_resources=(ExtenderManagedResource(name="example.com/gpu", ignored_by_scheduler=True),),
            tls_config=ExtenderTLSConfig(
                server_name="extender",
                cert_file="/c",
                key_file="/k",
                ca_file="/ca",
                cert_data=b"cert",
                key_data=b"key",
                ca_data=b"ca",
            ),
        ),
    )
    one, two = config.profiles
    assert (one.percentage_of_nodes_to_score, two.percentage_of_nodes_to_score) == (50, None)
    assert one.plugins.multi_point.disabled_names == {"ImageLocality"}
    assert one.args("Mine") == {"list": [1, None, {"deep": "yes"}], "none": None, "empty": {}}
    assert one.args("NodeAffinity").added_affinity is not None
    assert one.args("PodTopologySpread").default_constraints[0].min_domains == 2
    assert one.args("DynamicResources").filter_timeout == Duration(0.25)
    assert config.profile("two") is two
    assert config.profile("three") is None


ROUND_TRIPS: dict[str, SchedulerConfiguration] = {
    "defaults": default_config(),
    "every field": parse_config(FULL),
    "zeroes": parse_profiles(
        [{"percentageOfNodesToScore": 0, "plugins": {"score": {"enabled": [{"name": "A", "weight": 0}]}}}]
    ),
    "no default plugin": parse_profiles([{"plugins": {"multiPoint": {"disabled": [{"name": "*"}]}}}]),
    "moved default plugin": parse_profiles(
        [
            {
                "plugins": {
                    "multiPoint": {
                        "disabled": [{"name": "NodeName"}],
                        "enabled": [{"name": "X"}, {"name": "NodeName"}],
                    }
                }
            }
        ]
    ),
    "empty structs": parse_config(document(extenders=[{"tlsConfig": {}}])),
}


@pytest.mark.parametrize("config", ROUND_TRIPS.values(), ids=ROUND_TRIPS.keys())
def test_manifests_load_again(config: SchedulerConfiguration, tmp_path: Path) -> None:
    manifest = to_manifest(config)
    assert parse_config(manifest) == config
    assert parse_config(json.loads(json.dumps(manifest))) == config
    path = tmp_path / "config.yaml"
    path.write_text(dump_yaml(manifest))
    assert load_config(path) == config


def test_yaml_has_no_anchors() -> None:
    shared = {"a": 1}
    assert dump_yaml({"x": shared, "y": shared}) == "x:\n  a: 1\ny:\n  a: 1\n"


def test_a_manifest_shows_every_default() -> None:
    manifest = to_manifest(default_config())
    assert list(manifest)[:4] == ["apiVersion", "kind", "parallelism", "leaderElection"]
    assert manifest["leaderElection"]["leaseDuration"] == "15s"
    assert manifest["profiles"][0]["pluginConfig"][1] == {
        "name": "DynamicResources",
        "args": {
            "apiVersion": API_VERSION,
            "kind": "DynamicResourcesArgs",
            "filterTimeout": "10s",
            "bindingTimeout": "10m0s",
        },
    }


VERSIONS: dict[str, tuple[Any, str]] = {
    "no version": ({}, f"apiVersion: missing, expected {API_VERSION}"),
    "no kind": ({"apiVersion": API_VERSION}, f"kind: missing, expected {KIND}"),
    "unknown version": (
        {"apiVersion": "kubescheduler.config.k8s.io/v2", "kind": KIND},
        f"apiVersion: 'kubescheduler.config.k8s.io/v2' is unknown, expected {API_VERSION}",
    ),
    "version of another type": (
        {"apiVersion": 1, "kind": KIND},
        f"apiVersion: not text, expected {API_VERSION}",
    ),
    "unknown kind": (
        {"apiVersion": API_VERSION, "kind": "Pod"},
        f"kind: 'Pod' is unknown, expected {KIND}",
    ),
    "policy": (
        {"apiVersion": "v1", "kind": "Policy"},
        f"kind: Policy was replaced by {KIND} of {API_VERSION}; {CONVERT}",
    ),
    "list": ([], f"expected an object with apiVersion {API_VERSION} and kind {KIND}, got a list"),
    "nothing": (None, f"expected an object with apiVersion {API_VERSION} and kind {KIND}, got nothing"),
    "text": ("x", f"expected an object with apiVersion {API_VERSION} and kind {KIND}, got text or a number"),
    **{
        version: (
            {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": KIND},
            f"apiVersion: kubescheduler.config.k8s.io/{version} is no longer served, expected {API_VERSION}; "
            f"{CONVERT}",
        )
        for version in ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3")
    },
}


@pytest.mark.parametrize(("value", "problem"), VERSIONS.values(), ids=VERSIONS.keys())
def test_versions(value: Any, problem: str) -> None:
    assert problems(value) == [problem]


def args(plugin: str, value: Any) -> dict[str, Any]:
    return document(profiles=[{"pluginConfig": [{"name": plugin, "args": value}]}])


ARGS = "profiles[0].pluginConfig[0].args"
STRICT: dict[str, tuple[Any, list[str]]] = {
    "unknown at the top": (document(profile=[]), ["profile: unknown field; did you mean profiles?"]),
    "nothing like it": (document(colour="red"), ["colour: unknown field"]),
    "wrong case": (document(Parallelism=4), ["Parallelism: unknown field; did you mean parallelism?"]),
    "unknown in a section": (
        document(leaderElection={"lockObjectName": "x"}),
        ["leaderElection.lockObjectName: unknown field"],
    ),
    "unknown in a list": (
        document(profiles=[{"schedulerName": "a"}, {"schedulerName": "b", "plugin": {}}]),
        ["profiles[1].plugin: unknown field; did you mean plugins?"],
    ),
    "unknown extension point": (
        document(profiles=[{"plugins": {"unreserve": {}}}]),
        ["profiles[0].plugins.unreserve: unknown field; did you mean reserve?"],
    ),
    "unknown in a plugin": (
        document(profiles=[{"plugins": {"score": {"enabled": [{"name": "a", "wieght": 1}]}}}]),
        ["profiles[0].plugins.score.enabled[0].wieght: unknown field; did you mean weight?"],
    ),
    "plugin without a name": (
        document(profiles=[{"plugins": {"score": {"enabled": [{"weight": 1}]}}}]),
        ["profiles[0].plugins.score.enabled[0].name: Required value"],
    ),
    "unknown in an extender": (
        document(extenders=[{"enableHttps": True, "tlsConfig": {"CAFile": "x"}}]),
        [
            "extenders[0].enableHttps: unknown field; did you mean enableHTTPS?",
            "extenders[0].tlsConfig.CAFile: unknown field; did you mean caFile?",
        ],
    ),
    "unknown in arguments": (
        args("VolumeBinding", {"timeout": 1}),
        [f"{ARGS}.timeout: unknown field"],
    ),
    "unknown in a shape": (
        args(
            "NodeResourcesFit", {"scoringStrategy": {"requestedToCapacityRatio": {"shape": [{"Score": 2}]}}}
        ),
        [
            f"{ARGS}.scoringStrategy.requestedToCapacityRatio.shape[0].Score: unknown field; "
            "did you mean score?"
        ],
    ),
    "unknown in API types": (
        args(
            "NodeAffinity",
            {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "In", "value": "b"}]}
                        ]
                    }
                }
            },
        ),
        [
            f"{ARGS}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]."
            "matchExpressions[0].value: unknown field; did you mean values?"
        ],
    ),
    "unknown in constraints": (
        args("PodTopologySpread", {"defaultConstraints": [{"labelSelector": {"matchLabel": {}}}]}),
        [f"{ARGS}.defaultConstraints[0].labelSelector.matchLabel: unknown field; did you mean matchLabels?"],
    ),
    "text for a number": (document(parallelism="16"), ['parallelism: expected a whole number, got "16"']),
    "fraction for a whole number": (
        document(parallelism=1.5),
        ["parallelism: expected a whole number, got 1.5"],
    ),
    "truth for a number": (document(parallelism=True), ["parallelism: expected a whole number, got true"]),
    "number for truth": (document(enableProfiling=1), ["enableProfiling: expected true or false, got 1"]),
    "number for text": (
        document(clientConnection={"kubeconfig": 5, "qps": "fast"}),
        [
            "clientConnection.kubeconfig: expected text, got 5",
            'clientConnection.qps: expected a number, got "fast"',
        ],
    ),
    "not a finite number": (
        document(clientConnection={"qps": float("inf")}),
        ["clientConnection.qps: expected a number, got Infinity"],
    ),
    "line breaks": (document(**{"a\nb": 1}), ["a b: unknown field"]),
    "too great for 32 bits": (
        document(parallelism=1 << 31),
        ["parallelism: expected a whole number from -2147483648 to 2147483647, got 2147483648"],
    ),
    "too great for 64 bits": (
        document(podMaxBackoffSeconds=1 << 63),
        [
            "podMaxBackoffSeconds: expected a whole number from -9223372036854775808 to 9223372036854775807, "
            "got 9223372036854775808"
        ],
    ),
    "number for a duration": (
        document(leaderElection={"leaseDuration": 15}),
        ["leaderElection.leaseDuration: expected a duration (like 15s, 1m30s or 100ms), got 15"],
    ),
    "bad duration": (
        document(leaderElection={"leaseDuration": "15"}),
        ['leaderElection.leaseDuration: missing unit in duration "15" (like 15s, 1m30s or 100ms)'],
    ),
    "bad base64": (
        document(extenders=[{"tlsConfig": {"keyData": "not base64!"}}]),
        ["extenders[0].tlsConfig.keyData: expected bytes in base64"],
    ),
    "object for a list": (document(profiles={}), ["profiles: expected a list, got an object"]),
    "list for an object": (document(leaderElection=[]), ["leaderElection: expected an object, got a list"]),
    "null in a list": (document(profiles=[None]), ["profiles[0]: expected an object, got nothing"]),
    "text for a profile": (document(profiles=["a"]), ['profiles[0]: expected an object, got "a"']),
    "labels that are no text": (
        args(
            "PodTopologySpread",
            {"defaultConstraints": [{"labelSelector": {"matchLabels": {"a": 1, 2: "b"}}}]},
        ),
        [
            f"{ARGS}.defaultConstraints[0].labelSelector.matchLabels.a: expected text, got 1",
            f"{ARGS}.defaultConstraints[0].labelSelector.matchLabels: expected keys that are text, got 2",
        ],
    ),
    "arguments of another kind": (
        args("DefaultPreemption", {"apiVersion": API_VERSION, "kind": "InterPodAffinityArgs"}),
        [
            f"{ARGS}: args for plugin DefaultPreemption were not of type "
            "DefaultPreemptionArgs.kubescheduler.config.k8s.io, got "
            "InterPodAffinityArgs.kubescheduler.config.k8s.io; remove kind or correct it"
        ],
    ),
    "arguments of an old version": (
        args("DefaultPreemption", {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}),
        [f"{ARGS}.apiVersion: expected {API_VERSION} or nothing, got kubescheduler.config.k8s.io/v1beta3"],
    ),
    "arguments that are no object": (
        args("Mine", [1]),
        [f"{ARGS}: expected an object with the plugin's arguments"],
    ),
    "several at once": (
        document(a=1, profiles=[{"b": 2, "plugins": {"c": {}}}], extenders=[{"weight": "d"}]),
        [
            "a: unknown field",
            "profiles[0].b: unknown field",
            "profiles[0].plugins.c: unknown field",
            'extenders[0].weight: expected a whole number, got "d"',
        ],
    ),
}


@pytest.mark.parametrize(("value", "expected"), STRICT.values(), ids=STRICT.keys())
def test_strict(value: Any, expected: list[str]) -> None:
    assert problems(value) == expected


def test_errors_are_lines_that_name_the_place() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_config(document(parallelism=0, podInitialBackoffSeconds=0), where="file.yaml")
    assert isinstance(caught.value, InputError)
    assert caught.value.problems == (
        "file.yaml: parallelism: Invalid value: 0: should be an integer value greater than zero",
        "file.yaml: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
    )
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert caught.value.where == "file.yaml"


FILES = {
    "empty": ("", "{path}: expected one document, the file has no"),
    "comments": ("# nothing\n", "{path}: expected one document, the file has no"),
    "two documents": ("a: 1\n---\nb: 2\n", "{path}: expected one document, the file has 2"),
    "not YAML": ("a: [1\nb: 2\n", "{path}: line 2: not YAML: "),
    "list": ("- a\n", "{path}: expected an object with apiVersion"),
    "text": ("hello\n", "{path}: expected an object with apiVersion"),
    "key twice": (
        "kind: x\nprofiles:\n- plugins: {}\n  schedulerName: a\n  plugins: {}\n",
        "{path}: profiles[0].plugins: given twice (line 5); keep one",
    ),
    "value in itself": (
        "profiles: &all\n- pluginConfig: *all\n",
        "{path}: line 2: not YAML: a value contains itself; write it out",
    ),
}


@pytest.mark.parametrize(("text", "problem"), FILES.values(), ids=FILES.keys())
def test_files_that_are_no_configuration(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert str(caught.value).startswith(problem.format(path=path))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(InputError) as caught:
            load_config(path)
        assert not isinstance(caught.value, ConfigError)
        assert str(caught.value).startswith(f"{path}: ")


def test_json_and_leading_separators_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "config"
    for text in (json.dumps(document()), f"---\n# first\n---\n{dump_yaml(document())}"):
        path.write_text(text)
        assert read_document(path) == document()


def test_profiles_alone() -> None:
    config = parse_profiles([{"schedulerName": "a"}, {"schedulerName": "b"}])
    assert [profile.scheduler_name for profile in config.profiles] == ["a", "b"]
    assert parse_profiles([]) == default_config()
    with pytest.raises(ConfigError, match=r"^x: profiles\[0\]\.colour: unknown field$"):
        parse_profiles([{"colour": 1}], "x")


def test_loading_changes_nothing_it_was_given() -> None:
    given = document(
        profiles=[{"pluginConfig": [{"name": "NodeAffinity", "args": {"kind": "NodeAffinityArgs"}}]}]
    )
    before = json.dumps(given)
    parse_config(given)
    assert json.dumps(given) == before
