"""The flags of `moorage run`: every flag of kube-scheduler, with its meaning here."""

from __future__ import annotations

from typing import Final, NamedTuple

from moorage.cli.flags import (
    ADDRESS,
    DURATION,
    NUMBER,
    NUMBERS,
    PHRASES,
    QUANTITY,
    SWITCH,
    TEXT,
    VERSION,
    WHOLE,
    WORDS,
    Flag,
)
from moorage.cli.plugin_options import PLUGIN_HELP
from moorage.cli.version_options import GATES_HELP, VERSION_HELP
from moorage.config.without_effect import WITHOUT_EFFECT
from moorage.services.ports import SECURE_PORT

_HTTP1: Final = "only HTTP/1.1 is served"


class Group(NamedTuple):
    """Flags that are shown together."""

    title: str
    flags: tuple[Flag, ...]


GROUPS: Final = (
    Group(
        "Misc",
        (
            Flag(
                "config",
                TEXT,
                "",
                "A KubeSchedulerConfiguration; flags on connection and profiling yield to it.",
            ),
            Flag("write-config-to", TEXT, "", "Write the configuration in force to this file, and end."),
            Flag("master", TEXT, "", "The API server's address, if not the kubeconfig's."),
            Flag(
                "http-pipelining",
                SWITCH,
                "false",
                "Send several writes over one connection to the API server before the first is answered.",
            ),
            Flag(
                "insecure-send-credentials-over-http",
                SWITCH,
                "false",
                "Send tokens and passwords also to API servers whose address is http://, where they can be "
                "read on the network. Without it, requests to such servers are anonymous, as with kubectl.",
            ),
        ),
    ),
    Group(
        "Secure serving",
        (
            Flag("bind-address", ADDRESS, "127.0.0.1", "The address to serve on; 0.0.0.0 or ::, on all."),
            Flag("secure-port", WHOLE, str(SECURE_PORT), "The port to serve HTTPS on; 0: nothing is served."),
            Flag("disable-http2-serving", SWITCH, "false", "Do not serve HTTP/2.", _HTTP1),
            Flag(
                "cert-dir", TEXT, "", "Where kube-scheduler.crt and .key are, or are to be written when made."
            ),
            Flag(
                "tls-cert-file", TEXT, "", "The certificate, and those that sign it; without it, one is made."
            ),
            Flag("tls-private-key-file", TEXT, "", "The certificate's key."),
            Flag("tls-cipher-suites", WORDS, "", "Go's names of the cipher suites to accept up to TLS 1.2."),
            Flag("tls-curve-preferences", NUMBERS, "", "Go's number of the one curve to accept."),
            Flag("tls-min-version", TEXT, "", "VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13."),
            Flag(
                "tls-sni-cert-key",
                PHRASES,
                "",
                "A certificate for some names: cert,key or cert,key:*.a.example,b.example. May be repeated.",
            ),
            Flag(
                "http2-max-streams-per-connection", WHOLE, "0", "Streams in a connection of HTTP/2.", _HTTP1
            ),
            Flag("permit-port-sharing", SWITCH, "false", "Let other processes listen on the same port."),
            Flag(
                "permit-address-sharing",
                SWITCH,
                "false",
                "Listen where another process has just listened.",
                "that is always so",
            ),
        ),
    ),
    Group(
        "Authentication",
        (
            Flag(
                "authentication-kubeconfig",
                TEXT,
                "",
                "How to reach who knows tokens and client authorities; without it, as the scheduler does.",
            ),
            Flag(
                "authentication-token-webhook-cache-ttl",
                DURATION,
                "10s",
                "How long an answer on a token holds.",
            ),
            Flag("client-ca-file", TEXT, "", "The authorities of client certificates; else the cluster's."),
            Flag("requestheader-username-headers", WORDS, "x-remote-user", "Headers that name a user."),
            Flag("requestheader-uid-headers", WORDS, "", "Headers with a user's uid."),
            Flag("requestheader-group-headers", WORDS, "x-remote-group", "Headers with a user's groups."),
            Flag(
                "requestheader-extra-headers-prefix",
                WORDS,
                "x-remote-extra-",
                "How headers begin that say more about a user.",
            ),
            Flag(
                "requestheader-client-ca-file",
                TEXT,
                "",
                "The authorities of those who may name users in headers; else the cluster's.",
            ),
            Flag(
                "requestheader-allowed-names",
                WORDS,
                "",
                "Of those only who has one of these names; else all.",
            ),
            Flag("authentication-skip-lookup", SWITCH, "false", "Do not ask the cluster for authorities."),
            Flag(
                "authentication-tolerate-lookup-failure",
                SWITCH,
                "true",
                "Go on if the cluster does not tell of its authorities.",
            ),
        ),
    ),
    Group(
        "Authorization",
        (
            Flag(
                "authorization-kubeconfig",
                TEXT,
                "",
                "How to reach who knows permissions; without it, as the scheduler reaches the API server.",
            ),
            Flag(
                "authorization-webhook-cache-authorized-ttl", DURATION, "10s", "How long a permission holds."
            ),
            Flag(
                "authorization-webhook-cache-unauthorized-ttl", DURATION, "10s", "How long a refusal holds."
            ),
            Flag(
                "authorization-always-allow-paths",
                WORDS,
                "/healthz,/readyz,/livez",
                "Paths that everybody may ask for.",
            ),
        ),
    ),
    Group(
        "Deprecated",
        (
            Flag(
                "profiling", SWITCH, "true", "Serve /debug/flags/v and CPU profiles at /debug/pprof/profile."
            ),
            Flag(
                "contention-profiling",
                SWITCH,
                "true",
                "Profile waiting, too.",
                WITHOUT_EFFECT["enableContentionProfiling"],
            ),
            Flag(
                "kubeconfig", TEXT, "", "How to reach the API server; else as a pod does, or as kubectl does."
            ),
            Flag(
                "kube-api-content-type",
                TEXT,
                "application/vnd.kubernetes.protobuf",
                "What to speak with the API server.",
                WITHOUT_EFFECT["clientConnection.contentType"],
            ),
            Flag("kube-api-qps", NUMBER, "50", "Requests a second to the API server; negative: no limit."),
            Flag(
                "kube-api-burst",
                WHOLE,
                "100",
                "Number of requests to the API server in a burst above --kube-api-qps.",
            ),
            Flag(
                "pod-max-in-unschedulable-pods-duration",
                DURATION,
                "5m0s",
                "Longest time that a pod stays among the unschedulable pods without an event.",
            ),
        ),
    ),
    Group(
        "Leader election",
        (
            Flag("leader-elect", SWITCH, "true", "Schedule only while holding the lease."),
            Flag(
                "leader-elect-lease-duration",
                DURATION,
                "15s",
                "Time after which a lease that was not renewed can be taken by another candidate.",
            ),
            Flag(
                "leader-elect-renew-deadline",
                DURATION,
                "10s",
                "Time in which a leader must renew its lease before it stops leading.",
            ),
            Flag("leader-elect-retry-period", DURATION, "2s", "How long to wait between attempts."),
            Flag("leader-elect-resource-lock", TEXT, "leases", "What is held; only leases can be."),
            Flag("leader-elect-resource-name", TEXT, "kube-scheduler", "The lease's name."),
            Flag("leader-elect-resource-namespace", TEXT, "kube-system", "The lease's namespace."),
        ),
    ),
    Group(
        "Feature gates",
        (
            Flag(
                "emulated-version",
                WORDS,
                "",
                f"{VERSION_HELP}. Without it, that of the API server.",
            ),
            Flag(
                "min-compatibility-version",
                WORDS,
                "",
                "The oldest version of other components to expect: the emulated one, or the one before it.",
                "nothing that depends on it exists here",
            ),
            Flag(
                "feature-gates",
                PHRASES,
                "",
                GATES_HELP,
            ),
        ),
    ),
    Group(
        "Metrics",
        (
            Flag(
                "show-hidden-metrics-for-version",
                TEXT,
                "",
                "Show what was hidden since this version, which can only be the one before the emulated one.",
                "no metric is hidden",
            ),
            Flag("disabled-metrics", WORDS, "", "Metrics not to show, by their full names."),
            Flag(
                "allow-metric-labels",
                PHRASES,
                "",
                "The values of a metric's label to tell apart: metric,label=value,value. May be repeated.",
            ),
            Flag("allow-metric-labels-manifest", TEXT, "", "A YAML file that says the same."),
        ),
    ),
    Group(
        "Logs",
        (
            Flag("logging-format", TEXT, "text", "How to log: text or json."),
            Flag("log-flush-frequency", DURATION, "5s", "How long lines may be held back.", "none ever is"),
            Flag(
                "v", WHOLE, "0", "How much to log: 2 bindings, 3 attempts, 5 the queue, 10 scores.", short="v"
            ),
            Flag("vmodule", WORDS, "", "How much to log by file: pattern=N,... (text format only)."),
            Flag(
                "log-text-split-stream",
                SWITCH,
                "false",
                "Text: errors to stderr, the rest to stdout (alpha).",
            ),
            Flag(
                "log-text-info-buffer-size", QUANTITY, "0", "Text: hold so much back (alpha).", "none ever is"
            ),
            Flag(
                "log-json-split-stream",
                SWITCH,
                "false",
                "JSON: errors to stderr, the rest to stdout (alpha).",
            ),
            Flag(
                "log-json-info-buffer-size", QUANTITY, "0", "JSON: hold so much back (alpha).", "none ever is"
            ),
        ),
    ),
    Group(
        "Plugins",
        (
            Flag("plugin", PHRASES, "", PLUGIN_HELP),
            Flag(
                "slow-plugin-warning",
                DURATION,
                "100ms",
                "Warn of plugins of your own that keep the scheduler busy for longer in one call; 0s: never.",
            ),
        ),
    ),
    Group(
        "Attempts and comparisons",
        (
            Flag(
                "remembered-attempts",
                WHOLE,
                "10",
                "Number of attempts of each pod that `moorage attempts` can show; 0: none.",
            ),
            Flag(
                "remembered-attempts-memory",
                QUANTITY,
                "64Mi",
                "Memory for them; the attempts of the pods that were attempted least recently go first.",
            ),
            Flag(
                "record",
                TEXT,
                "",
                "Write every attempt and every change of the cluster to this file, for `moorage replay`.",
            ),
            Flag(
                "shadow",
                SWITCH,
                "false",
                "Bind nothing: decide each pod when another scheduler binds it, and report where both agree.",
            ),
            Flag(
                "shadow-report", TEXT, "", "With --shadow: append a line of JSON for each pod to this file."
            ),
            Flag(
                "ui-port",
                WHOLE,
                "0",
                "Show cluster, queue and attempts in a page on this port of 127.0.0.1, by a process of its "
                "own that ends with this one; 0: any free port. Without it, there is no page.",
            ),
            Flag(
                "tie-seed",
                WHOLE,
                "0",
                "Seed of the choice among equally good nodes; without it, another one each time.",
            ),
        ),
    ),
    Group(
        "Global",
        (
            Flag("version", VERSION, "false", "Print the version, and end; raw: all there is to say of it."),
            Flag("help", SWITCH, "false", "Print this, and end.", short="h"),
        ),
    ),
)

FLAGS: Final = tuple(flag for group in GROUPS for flag in group.flags)
