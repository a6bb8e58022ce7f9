"""Single values: plausible ones that get far into the server, and strange ones that should not."""

from __future__ import annotations

from random import Random
from typing import Any

NAMES = ("a", "b", "c", "web", "db-0", "node-1", "node-2", "x.example.com", "team-a")
NAMESPACES = ("default", "default", "kube-system", "team-a", "team-b")

WORDS = (
    "app", "web", "Always", "Never", "OnFailure", "IfNotPresent", "TCP", "UDP", "NoSchedule", "NoExecute",
    "Exists", "Equal", "In", "NotIn", "DoesNotExist", "Gt", "Lt", "True", "False", "Unknown", "Ready", "cpu",
    "memory", "nvidia.com/gpu", "requests.cpu", "count/pods", "hugepages-2Mi", "ephemeral-storage", "pods",
    "kubernetes.io/hostname", "topology.kubernetes.io/zone", "Delete", "Retain", "Immediate", "Filesystem",
    "WaitForFirstConsumer", "ReadWriteOnce", "ReadWriteOncePod", "ClusterIP", "NodePort", "ExternalName",
    "LoadBalancer", "None", "10.0.0.1", "::1", "system:masters", "v1", "apps/v1", "Pod", "Recreate",
    "RollingUpdate", "Indexed", "NonIndexed", "*/5 * * * *", "@daily", "Guaranteed", "metadata.name",
    "spec.replicas", ".status.replicas", "nginx:1", "100%", "25%", "http", "https", "/tmp", "../etc", "1",
    "kubernetes.io/service-account-token", "Terminating", "BestEffort", "PriorityClass", "default",
    "system-node-critical", "device.driver == 'x'", "self.x > 0", "main", "data", "Pending", "Running",
)  # fmt: skip

QUANTITIES = (
    "1", "0", "100m", "1Gi", "1.5", "1e3", "-1", "+5", "1Ki", "0.1n", "1E18", "9223372036854775807",
    "92233720368547758080", "1e1000000000", "1e-400", "1i", "", "1 Gi", ".5", "5.", "1Ei", "999999999999Ei",
    "1m1", "0x10", "١", "1" * 400, "NaN", "inf", 1, 0, -3, 2.5, 1e300,
)  # fmt: skip

MOMENTS = (
    "2026-03-01T12:00:00Z", "2026-03-01T12:00:00.123456Z", "2026-03-01T12:00:00+02:00",
    "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z",
    "2026-02-30T00:00:00Z", "2026-03-01T24:00:00Z", "2026-03-01T23:59:60Z", "2026-03-01", "", "now",
    "2026-03-01T12:00:00.999999999Z", "2026-03-01t12:00:00z", "-2026-03-01T12:00:00Z",
)  # fmt: skip

NUMBERS = (
    0, 1, -1, 2, 3, 5, 80, 443, 8080, 30000, 65535, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**53 + 1,
    2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**30, 10**400,
)  # fmt: skip

FLOATS = (0.0, -0.0, 0.5, 1.0, -1.5, 1e15, 1e16, 1e100, 1e308, 5e-324, float("inf"), float("nan"))

TEXTS = (
    "", " ", "\x00", "a\x00b", "\ud800", "a\udfffb", "\ufeff", "\u202ertl", "é", "é", "日本", "😀",
    "a\nb", "a\r\nX-Injected: 1", "\x7f", "\x1b[31m", "-", ".", "..", "a..b", "/", "a/b", "a/b/c", "/a",
    "A", "UPPER", "a_b", "a b", "a" * 63, "a" * 64, "a" * 253, "a" * 254, "a" * 5000, "%2e%2e", "%", "%s%n",
    "{}", "{0.__class__}", "$patch", "${x}", "'", '"', "\\", "`", "<script>", "1", "-1", "1.0", "true",
    "null", "0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f", "kubernetes.io/x", "k8s.io/a", "x/" + "a" * 64,
    "(a+)+$", "[", "(?P<n>", "^.*$", "\\p{L}", "١٢٣", "1_000", "0x1f", "1e5", "+1", " 1", "\u2028",
)  # fmt: skip


def chance(random: Random, one_in: int) -> bool:
    return random.randrange(one_in) == 0


def text(random: Random) -> str:
    """Mostly words that mean something somewhere."""
    if random.random() < 0.7:
        return random.choice(WORDS)
    if random.random() < 0.7:
        return random.choice(TEXTS)
    return "".join(chr(random.choice((random.randrange(128), random.randrange(0x3000)))) for _ in range(8))


def strange(random: Random, depth: int = 2) -> Any:
    """A JSON value of any type."""
    sort = random.randrange(12)
    if sort < 3:
        return text(random)
    if sort == 3:
        return random.choice(NUMBERS)
    if sort == 4:
        return random.choice(FLOATS)
    if sort == 5:
        return random.choice((None, True, False))
    if sort == 6:
        return random.choice(QUANTITIES)
    if sort == 7:
        return random.choice(MOMENTS)
    if sort == 8 and chance(random, 8):
        return nested(random, random.choice((20, 99, 150, 600, 3000)))
    if depth == 0 or sort == 8:
        return random.choice(([], {}, "", None))
    if sort == 9:
        return [strange(random, depth - 1) for _ in range(random.randrange(4))]
    return {text(random): strange(random, depth - 1) for _ in range(random.randrange(4))}


def nested(random: Random, depth: int) -> Any:
    """A value inside a value inside a value."""
    value: Any = random.choice((1, "x", None, {}, []))
    key = random.choice(("a", "properties", "items", "not", "spec", "f:a"))
    as_list = chance(random, 2)
    for _ in range(depth):
        value = [value] if as_list else {key: value}
    return value
