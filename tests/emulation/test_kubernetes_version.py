"""The versions that can be emulated: which there are, how one is chosen, and what differs."""

from __future__ import annotations

import pytest

from moorage.emulation.kubernetes_version import (
    DEFAULT_VERSION,
    KUBERNETES_VERSIONS,
    V1_36,
    V1_37,
    KubernetesVersion,
    VersionError,
    differences,
    nearest_version,
    parse_version,
)


def test_the_newest_version_is_the_default() -> None:
    assert list(KUBERNETES_VERSIONS) == ["1.36", "1.37"]
    assert DEFAULT_VERSION is V1_37
    assert (V1_36.minor, V1_36.previous_minor) == ("1.36", "1.35")


@pytest.mark.parametrize("text", ["1.36", "v1.36", "kube=1.36"])
def test_a_version_is_chosen(text: str) -> None:
    assert parse_version([text]) is V1_36
    assert parse_version([]) is None


@pytest.mark.parametrize("text", ["1.35", "1.38", "latest", "", "kube="])
def test_other_versions_cannot_be_emulated(text: str) -> None:
    with pytest.raises(VersionError, match=r"only 1\.36 or 1\.37 is possible"):
        parse_version([text])


SERVERS = {
    "the same": (("1", "36"), V1_36),
    "a provider's": (("1", "37+"), V1_37),
    "older": (("1", "31"), V1_36),
    "newer": (("1", "40"), V1_37),
    "unreadable": (("one", ""), V1_37),
}


@pytest.mark.parametrize(("server", "emulated"), SERVERS.values(), ids=SERVERS.keys())
def test_the_nearest_version_is_emulated(server: tuple[str, str], emulated: KubernetesVersion) -> None:
    assert nearest_version(*server) is emulated


def test_gates_that_were_set_are_in_the_table() -> None:
    def gates(version: KubernetesVersion) -> dict[str, tuple[bool, bool]]:
        return {
            name: (values["1.36"], values["1.37"])
            for name, meaning, values in differences(version)
            if not meaning
        }

    assert gates(V1_37) == {"StorageCapacityScoring": (False, True), "VolumeLimitScaling": (False, True)}
    scored = V1_36.with_gates({"StorageCapacityScoring": True})
    assert gates(scored) == {"VolumeLimitScaling": (False, True)}
