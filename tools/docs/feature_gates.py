"""Feature gates, and what else differs between the emulated versions of Kubernetes."""

from __future__ import annotations

from moorage.emulation.feature_gates import Features, Gate, known_gates
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KUBERNETES_VERSIONS, differences
from tools.docs.markdown import code, escaped, table
from tools.docs.syntax import field_texts


def page() -> str:
    """The page."""
    minors = list(KUBERNETES_VERSIONS)
    parts = [
        "# Feature gates",
        "Every gate that kube-scheduler knows, by the version that is emulated (`--emulated-version`, "
        f"default {DEFAULT_VERSION.minor}): its stage and default, and the gates without which it cannot be "
        "on. Most concern other components, or behaviour that moorage has as Kubernetes has it by default; "
        "those that change moorage's behaviour come first.",
        "## Gates that change moorage's behaviour",
        table(["gate", *(f"v{minor}" for minor in minors), "meaning"], _effective(minors)),
        "## All gates",
        table(["gate", *(f"v{minor}" for minor in minors), "needs"], _all(minors)),
        "## Other differences between versions",
        table(["difference", *(f"v{minor}" for minor in minors)], _differences(minors)),
    ]
    return "\n\n".join(parts) + "\n"


def _effective(minors: list[str]) -> list[list[str]]:
    texts = {name.replace("_", ""): text for name, text in field_texts(Features).items()}
    return [
        [code(name), *_states(name, minors), escaped(texts[name.lower()])]
        for name in _names(minors)
        if name.lower() in texts
    ]


def _all(minors: list[str]) -> list[list[str]]:
    rows = []
    for name in _names(minors):
        needed = {each: None for minor in minors if (gate := _gate(minor, name)) for each in gate.needs}
        rows.append([code(name), *_states(name, minors), ", ".join(map(code, needed))])
    return rows


def _names(minors: list[str]) -> list[str]:
    return sorted({name for minor in minors for name in known_gates(minor)}, key=str.lower)


def _states(name: str, minors: list[str]) -> list[str]:
    return [_state(_gate(minor, name)) for minor in minors]


def _gate(minor: str, name: str) -> Gate | None:
    return known_gates(minor).get(name)


def _state(gate: Gate | None) -> str:
    if gate is None:
        return "—"
    return f"{gate.stage.lower()}, {'on' if gate.is_on else 'off'}{', locked' if gate.is_locked else ''}"


def _differences(minors: list[str]) -> list[list[str]]:
    return [
        [escaped(each.meaning), *("yes" if each.values[minor] else "no" for minor in minors)]
        for each in differences(DEFAULT_VERSION)
        if each.meaning
    ]
