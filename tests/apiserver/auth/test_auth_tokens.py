from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from moorage.admission.users import AUTHENTICATED, User
from moorage.api.manifests import Manifest
from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.auth.claims import ISSUER
from moorage_cluster.apiserver.auth.jwt import SigningKey
from moorage_cluster.apiserver.auth.serviceaccount_tokens import TokenError
from moorage_cluster.apiserver.auth.tokens import ADMIN, ANONYMOUS_USER, Authenticator
from tests.apiserver.auth.cluster import Store, named

KEY = SigningKey.generate()
START = 1_800_000_000
ACCOUNT = named("ServiceAccount", "runner", "ci")
POD = named("Pod", "job", "ci", spec={"serviceAccountName": "runner", "nodeName": "n1"})
SECRET = named("Secret", "s", "ci")
NODE = named("Node", "n1")
BOUND_POD = {"kind": "Pod", "apiVersion": "v1", "name": "job"}


class Server:
    """A cluster, its authenticator, and the time."""

    def __init__(self, **options: Any) -> None:
        self.seconds = float(START)
        self.store = Store(ACCOUNT, POD, SECRET, NODE)
        self.authenticator = Authenticator("admin's", KEY, self.store, now=lambda: self.seconds, **options)

    def token(self, account: Manifest = ACCOUNT, **spec: Any) -> str:
        token: str = self.authenticator.issue(account, {"spec": spec})["status"]["token"]
        return token


SYSTEM = named("ServiceAccount", "scheduler", "kube-system")
STATIC = {
    "kubelet's": User("system:node:n1", ("system:nodes",)),
    "scheduler's": User("system:kube-scheduler"),
    "user's": User("jane", ("system:masters",)),
}


@pytest.mark.parametrize(
    ("header", "is_known"),
    [
        ("Bearer kubelet's", True),
        ("Bearer scheduler's", True),
        ("Bearer user's", False),
        ("Bearer admin's", False),
        ("Bearer nobody's", False),
        (None, False),
    ],
)
def test_components_of_the_cluster_are_known(header: str | None, is_known: bool) -> None:
    assert Server(static_users=STATIC).authenticator.is_of_control_plane(header) is is_known


@pytest.mark.parametrize(("account", "is_known"), [(SYSTEM, True), (ACCOUNT, False)])
def test_accounts_of_kube_system_are_known_from_their_first_request_on(
    account: Manifest, is_known: bool
) -> None:
    server = Server()
    server.store.put(account)
    header = f"Bearer {server.token(account)}"
    assert not server.authenticator.is_of_control_plane(header), "no signature is verified for this"
    server.authenticator.authenticate(header)
    assert server.authenticator.is_of_control_plane(header) is is_known


def claims_of(token: str) -> Any:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def forged(claims: Any, key: SigningKey = KEY, alg: str = "ES256") -> str:
    """A token as any other implementation would sign it."""
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": alg}, claims)]
    private = serialization.load_pem_private_key(key.pem(), None)
    assert isinstance(private, ec.EllipticCurvePrivateKey)
    signature = private.sign(b".".join(parts), ec.ECDSA(hashes.SHA256()))
    halves = b"".join(half.to_bytes(32) for half in utils.decode_dss_signature(signature))
    return b".".join((*parts, encoded(halves))).decode()


def confused(claims: Any) -> str:
    """A token that takes what everybody knows of the key for a secret."""
    parts = [encoded(json.dumps(part).encode()) for part in ({"alg": "HS256"}, claims)]
    public = json.dumps(KEY.public_jwk()).encode()
    return b".".join((*parts, encoded(hmac.digest(public, b".".join(parts), "sha256")))).decode()


def encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


@pytest.mark.parametrize(
    ("header", "user"),
    [
        ("Bearer admin's", ADMIN),
        ("bearer admin's", ADMIN),
        ("Bearer bob's", User("bob", ("devs", AUTHENTICATED), "7")),
        (" Bearer bob's and more", User("bob", ("devs", AUTHENTICATED), "7")),
        ("Bearer two words", None),
        ("Bearer ", ANONYMOUS_USER),
        (None, ANONYMOUS_USER),
        ("", ANONYMOUS_USER),
        ("Basic YTpi", ANONYMOUS_USER),
        ("Bearer", ANONYMOUS_USER),
        ("Bearer admin'", None),
        ("Bearer admin'ß", None),
        ("Bearer a.b.c", None),
        ("Bearer ....", None),
        ("Bearer é.é.é", None),
    ],
)
def test_headers_identify(header: str | None, user: User | None) -> None:
    users = {"bob's": User("bob", ("devs",), "7"), "two words": User("eve"), "": User("eve")}
    authenticator = Server(static_users=users).authenticator
    if user is not None:
        assert authenticator.authenticate(header) == user
        return
    with pytest.raises(ApiError) as caught:
        authenticator.authenticate(header)
    assert (caught.value.code, caught.value.message) == (401, "Unauthorized")


def test_anonymous_requests_are_rejected_if_disabled() -> None:
    with pytest.raises(ApiError, match="Unauthorized"):
        Server(allows_anonymous=False).authenticator.authenticate(None)


def test_an_empty_admin_token_opens_nothing() -> None:
    with pytest.raises(TokenError):
        Authenticator("", KEY, Store()).identify("")


def test_a_token_says_what_kubernetes_tokens_say() -> None:
    server = Server()
    answer = server.authenticator.issue(ACCOUNT, {"spec": {"boundObjectRef": BOUND_POD}})
    claims = claims_of(answer["status"]["token"])
    assert claims.pop("jti")
    assert claims == {
        "iss": ISSUER,
        "sub": "system:serviceaccount:ci:runner",
        "aud": [ISSUER],
        "exp": START + 3600,
        "iat": START,
        "nbf": START,
        "kubernetes.io": {
            "namespace": "ci",
            "serviceaccount": {"name": "runner", "uid": "runner-uid"},
            "pod": {"name": "job", "uid": "job-uid"},
            "node": {"name": "n1", "uid": "n1-uid"},
        },
    }
    assert answer["status"]["expirationTimestamp"] == "2027-01-15T09:00:00Z"
    assert answer["metadata"] == {
        "name": "runner",
        "namespace": "ci",
        "uid": "runner-uid",
        "creationTimestamp": "2027-01-15T08:00:00Z",
    }
    assert answer["spec"] == {
        "audiences": [ISSUER],
        "expirationSeconds": 3600,
        "boundObjectRef": BOUND_POD,
    }


def test_a_token_identifies_its_account() -> None:
    server = Server()
    token = server.token(boundObjectRef=BOUND_POD)
    user = server.authenticator.authenticate(f"Bearer {token}")
    assert user == User(
        "system:serviceaccount:ci:runner",
        ("system:serviceaccounts", "system:serviceaccounts:ci", AUTHENTICATED),
        "runner-uid",
        {
            "authentication.kubernetes.io/pod-name": ("job",),
            "authentication.kubernetes.io/pod-uid": ("job-uid",),
            "authentication.kubernetes.io/credential-id": (f"JTI={claims_of(token)['jti']}",),
            "authentication.kubernetes.io/node-name": ("n1",),
            "authentication.kubernetes.io/node-uid": ("n1-uid",),
        },
    )


def pass_(seconds: float) -> Callable[[Server], None]:
    def change(server: Server) -> None:
        server.seconds += seconds

    return change


def remove(obj: Manifest) -> Callable[[Server], None]:
    return lambda server: server.store.remove(obj)


def replace(obj: Manifest, **metadata: str) -> Callable[[Server], None]:
    return lambda server: server.store.put({**obj, "metadata": {**obj["metadata"], **metadata}})


GONE = "service account token has been invalidated"


@pytest.mark.parametrize(
    ("bound_to", "change", "problem"),
    [
        (None, pass_(3600 + 59), None),
        (None, pass_(3600 + 61), "service account token has expired"),
        (None, pass_(-59), None),
        (None, pass_(-61), "service account token is not valid yet"),
        (None, remove(ACCOUNT), 'serviceaccounts "runner" not found'),
        (None, replace(ACCOUNT, uid="new"), "service account UID (new) does not match claim (runner-uid)"),
        (
            None,
            replace(ACCOUNT, deletionTimestamp="2027-01-15T07:58:00Z"),
            "service account ci/runner has been deleted",
        ),
        (None, replace(ACCOUNT, deletionTimestamp="2027-01-15T07:59:30Z"), None),
        (POD, remove(NODE), None),
        (POD, remove(POD), GONE),
        (POD, replace(POD, deletionTimestamp="2027-01-15T07:58:00Z"), GONE),
        (
            POD,
            replace(POD, uid="new"),
            "pod UID (new) does not match service account pod ref claim (job-uid)",
        ),
        (SECRET, remove(POD), None),
        (SECRET, remove(SECRET), GONE),
        (
            SECRET,
            replace(SECRET, uid="new"),
            "secret UID (new) does not match service account secret ref claim (s-uid)",
        ),
        (NODE, remove(NODE), GONE),
        (
            NODE,
            replace(NODE, uid="new"),
            "node UID (new) does not match service account node ref claim (n1-uid)",
        ),
    ],
)
def test_a_token_holds_as_long_as_it_should(
    bound_to: Manifest | None, change: Callable[[Server], None], problem: str | None
) -> None:
    server = Server()
    ref = bound_to and {"kind": bound_to["kind"], "apiVersion": "v1", "name": bound_to["metadata"]["name"]}
    token = server.token(boundObjectRef=ref)
    assert server.authenticator.identify(token).user.name == "system:serviceaccount:ci:runner"
    change(server)
    if problem is None:
        server.authenticator.identify(token)
        return
    with pytest.raises(TokenError) as caught:
        server.authenticator.identify(token)
    assert str(caught.value) == problem


def test_forgeries_are_refused() -> None:
    server = Server()
    claims = claims_of(server.token())
    good = forged(claims)
    assert server.authenticator.identify(good)
    header, payload, signature = good.split(".")
    richer = forged({**claims, "sub": "system:admin"}).split(".")[1]
    forgeries = {
        "other key": forged(claims, SigningKey.generate()),
        "no algorithm": forged(claims, alg="none"),
        "other algorithm": confused(claims),
        "short signature": good[:-8],
        "no signature": f"{header}.{payload}.",
        "changed": f"{header}.{richer}.{signature}",
        "other issuer": forged({**claims, "iss": "https://else.where"}),
        "wrong types": forged({**claims, "exp": "never"}),
        "a list": forged([1]),
    }
    believed = []
    for name, token in forgeries.items():
        with suppress(TokenError):
            server.authenticator.identify(token)
            believed.append(name)
    assert believed == []


@pytest.mark.parametrize(
    ("audiences", "wanted", "shared"),
    [
        ([], (), (ISSUER,)),
        (["vault"], ("vault", "other"), ("vault",)),
        (["vault", ISSUER], (), (ISSUER,)),
        (["vault"], (), None),
        ([], ("vault",), None),
    ],
)
def test_audiences(audiences: list[str], wanted: tuple[str, ...], shared: tuple[str, ...] | None) -> None:
    server = Server()
    token = server.token(audiences=audiences)
    if shared is not None:
        assert server.authenticator.identify(token, wanted).audiences == shared
        return
    with pytest.raises(TokenError) as caught:
        server.authenticator.identify(token, wanted)
    response, targets = f'["{(audiences or [ISSUER])[0]}"]', f'["{(wanted or (ISSUER,))[0]}"]'
    assert str(caught.value) == f"token audiences {response} is invalid for the target audiences {targets}"


def test_the_admins_token_is_for_this_server_only() -> None:
    authenticator = Server().authenticator
    assert authenticator.identify("admin's", (ISSUER, "x")) == (ADMIN, (ISSUER,))
    with pytest.raises(TokenError, match="invalid bearer token"):
        authenticator.identify("admin's", ("vault",))


INVALID = 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: '
CONFLICT = "Operation cannot be fulfilled on "


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            {"spec": {"expirationSeconds": 599}},
            422,
            f"{INVALID}599: may not specify a duration less than 10 minutes",
        ),
        (
            {"spec": {"expirationSeconds": (1 << 32) + 1}},
            422,
            f"{INVALID}4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        (
            {"metadata": {"name": "x"}},
            422,
            'TokenRequest.authentication.k8s.io "runner" is invalid: metadata.name: Invalid value: "x": '
            "must match the service account name if specified",
        ),
        (
            {"metadata": {"uid": "x"}},
            409,
            f'{CONFLICT}TokenRequest.authentication.k8s.io "runner": the UID in the token request (x) does '
            "not match the UID of the service account (runner-uid)",
        ),
        (
            {"spec": {"boundObjectRef": {**BOUND_POD, "name": "gone"}}},
            404,
            'pods "gone" not found',
        ),
        (
            {"spec": {"boundObjectRef": {**BOUND_POD, "name": "other"}}},
            400,
            'cannot bind token for serviceaccount "runner" to pod running with different serviceaccount '
            "name.",
        ),
        (
            {"spec": {"boundObjectRef": {**BOUND_POD, "uid": "x"}}},
            409,
            f'{CONFLICT}Pod "job": the UID in the bound object reference (x) does not match the UID in '
            "record. The object might have been deleted and then recreated",
        ),
        (
            {"spec": {"boundObjectRef": {"kind": "Deployment", "apiVersion": "apps/v1", "name": "d"}}},
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
        (
            {"spec": {"expirationSeconds": "long"}},
            400,
            'TokenRequest in version "v1" cannot be handled as a TokenRequest: Expected `int | null`, '
            "got `str` - at `$.spec.expirationSeconds`",
        ),
        (
            {"spec": []},
            400,
            'TokenRequest in version "v1" cannot be handled as a TokenRequest: Expected `object | null`, '
            "got `array` - at `$.spec`",
        ),
    ],
)
def test_bad_requests_for_tokens(body: Manifest, code: int, message: str) -> None:
    server = Server()
    server.store.put(named("Pod", "other", "ci", spec={"serviceAccountName": "default"}))
    with pytest.raises(ApiError) as caught:
        server.authenticator.issue(ACCOUNT, body)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_the_longest_token_and_a_pods_default_one() -> None:
    server = Server()
    assert claims_of(server.token(expirationSeconds=1 << 32))["exp"] == START + (1 << 32)
    projected = claims_of(server.token(expirationSeconds=3607, boundObjectRef=BOUND_POD))
    assert projected["exp"] == START + 365 * 24 * 3600
    assert projected["kubernetes.io"]["warnafter"] == START + 3607
    assert claims_of(server.token(expirationSeconds=3607))["exp"] == START + 3607


def test_many_tokens_do_not_pile_up() -> None:
    server = Server()
    for _ in range(1100):
        server.authenticator.identify(server.token())
    assert len(server.authenticator._accounts._verified) <= 1024
