"""Service-account issuer discovery: a relying party verifies a token with nothing but what it is told."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils

from moorage_cluster.apiserver.embedded import EmbeddedServer, Settings
from moorage_cluster.apiserver.journal import JournalError
from tests.apiserver.client import Cluster

CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"


@pytest.fixture
def guarded() -> Iterator[Cluster]:
    cluster = Cluster(Settings(authorization="RBAC"))
    yield cluster
    cluster.close()


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def verified(token: str, keys: Any) -> Any:
    """The claims of a token, verified as an OpenID Connect client does it."""
    signed, _, signature = token.rpartition(".")
    header, claims = (json.loads(decoded(part)) for part in signed.split("."))
    [key] = [one for one in keys if one["kid"] == header["kid"]]
    assert (key["kty"], key["crv"], key["alg"], key["use"]) == ("EC", "P-256", header["alg"], "sig")
    x, y = (int.from_bytes(decoded(key[name])) for name in "xy")
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    halves = decoded(signature)[:32], decoded(signature)[32:]
    encoded = utils.encode_dss_signature(*(int.from_bytes(half) for half in halves))
    public.verify(encoded, signed.encode(), ec.ECDSA(hashes.SHA256()))
    return claims


def test_tokens_are_verified_by_what_is_discovered(guarded: Cluster) -> None:
    token = guarded.post(TOKENS, {"spec": {"audiences": ["vault"]}})["status"]["token"]
    as_account = {"authorization": f"Bearer {guarded.post(TOKENS, {})['status']['token']}"}
    found = guarded.request("GET", CONFIGURATION, headers={**as_account, "host": "localhost:6443"})
    assert found.json == {
        "issuer": "https://kubernetes.default.svc.cluster.local",
        "jwks_uri": f"https://localhost:6443{KEYS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }
    assert found.headers["Cache-Control"] == "public, max-age=3600"
    keys = guarded.request("GET", urlsplit(found["jwks_uri"]).path, headers=as_account)
    assert keys.headers["Cache-Control"] == "public, max-age=3600"
    claims = verified(token, json.loads(keys.raw)["keys"])
    assert (claims["iss"], claims["aud"]) == (found["issuer"], ["vault"])
    assert claims["sub"] == "system:serviceaccount:default:default"


@pytest.mark.parametrize("path", [CONFIGURATION, KEYS])
def test_discovery_is_for_service_accounts(guarded: Cluster, path: str) -> None:
    anonymous = guarded.request("GET", path, headers={"authorization": ""})
    assert anonymous.code == 403
    assert anonymous.message.endswith(f'cannot get path "{path}"')


def test_key_stays_with_the_data(tmp_path: Path) -> None:
    def keys() -> bytes:
        cluster = Cluster(Settings(data_dir=tmp_path))
        try:
            return cluster.get(KEYS).raw
        finally:
            cluster.close()

    assert keys() == keys()


@pytest.mark.parametrize("content", [b"no key", b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"])
def test_key_that_cannot_be_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "service-account.key").write_bytes(content)
    with pytest.raises(JournalError) as caught:
        EmbeddedServer(Settings(data_dir=tmp_path))
    assert re.match(r"cannot use .*service-account\.key: ", str(caught.value))
    (tmp_path / "service-account.key").unlink()
    EmbeddedServer(Settings(data_dir=tmp_path)).close()  # The one that failed does not hold the directory.
