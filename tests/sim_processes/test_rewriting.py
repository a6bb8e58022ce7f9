from __future__ import annotations

from pathlib import Path

import pytest

from moorage_cluster.processes.rewriting import Rewriting

MOUNTS = {
    "/etc/moorage": Path("/pod/config"),
    "/etc/moorage/keys/": Path("/pod/keys"),
    "/data": Path("/pod/data"),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "--config=/etc/moorage/config.yaml", "--config=/pod/config/config.yaml", id="below a mount"
        ),
        pytest.param("/etc/moorage", "/pod/config", id="the mount itself"),
        pytest.param("/etc/moorage/keys/a", "/pod/keys/a", id="the longest mount"),
        pytest.param("/data:/etc/moorage", "/pod/data:/pod/config", id="several"),
        pytest.param("/etc/moorage2/x /database", "/etc/moorage2/x /database", id="another path"),
        pytest.param("/opt/data/x ./data", "/opt/data/x ./data", id="the end of another path"),
        pytest.param("--bind-address=0.0.0.0", "--bind-address=127.64.0.2", id="all addresses"),
        pytest.param("http://127.0.0.1:80 [::]:80", "http://127.64.0.2:80 127.64.0.2:80", id="loopback"),
        pytest.param("10.0.0.0.0 127.0.0.10", "10.0.0.0.0 127.0.0.10", id="another address"),
    ],
)
def test_paths_and_addresses_of_a_container_are_those_of_this_machine(text: str, expected: str) -> None:
    assert Rewriting(MOUNTS, "127.64.0.2")(text) == expected


def test_a_pod_with_the_machines_network_keeps_addresses() -> None:
    assert Rewriting({}, "")("0.0.0.0:80 /data") == "0.0.0.0:80 /data"
    assert Rewriting(MOUNTS, "")("0.0.0.0:80 /data") == "0.0.0.0:80 /pod/data"
