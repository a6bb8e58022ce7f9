"""Validation of an installation, before anything is printed. Invalid ones are InputErrors."""

from __future__ import annotations

from typing import Final

from moorage.api.decode import InputError
from moorage.api.names import config_key_problems, dns_label_problems, dns_subdomain_problems
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.api.quantity import parse_quantity
from moorage.config.types import SchedulerConfiguration
from moorage.manifests.installation import Installation

_MAX_BYTES: Final = 1024 * 1024
"""Maximum size of a ConfigMap, in bytes."""
_MIN_MEMORY: Final = "192Mi"
"""Memory limit under which the process does not start: it takes 80 to 110 MiB before the first pod."""


def check(installation: Installation, config: SchedulerConfiguration) -> None:
    """InputError where an installation with this configuration could not work."""
    _check_names(installation)
    _check_memory(installation.memory_limit)
    _check_files(installation)
    _check_extenders(config)
    if installation.lease is None and installation.replicas > 1:
        raise InputError(
            "--replicas",
            f"{installation.replicas} replicas without leader election would race; say --replicas 1",
        )
    schedules_itself = not installation.node and not installation.is_shadow
    if schedules_itself and DEFAULT_SCHEDULER in (each.scheduler_name for each in config.profiles):
        raise InputError(
            "--config",
            f"the profile {DEFAULT_SCHEDULER} would have to schedule its own pods, which is not possible "
            "before it runs: give the profile another name, set the node of the pods with --node, or "
            "replace kube-scheduler where it is, as a static pod",
        )


def _check_names(installation: Installation) -> None:
    for option, text in (("--name", installation.name), ("--namespace", installation.namespace)):
        if problems := dns_label_problems(text):
            raise InputError(option, f"{text!r}: {problems[0]}")
    if installation.node and (problems := dns_subdomain_problems(installation.node)):
        raise InputError("--node", f"{installation.node!r}: {problems[0]}")
    if installation.image.split() != [installation.image]:
        raise InputError("--image", f"{installation.image!r} is not the name of an image")


def _check_memory(text: str) -> None:
    try:
        amount = parse_quantity(text)
    except ValueError as error:
        raise InputError("--memory", str(error)) from None
    if amount < parse_quantity(_MIN_MEMORY):
        raise InputError(
            "--memory", f"{text} is less than an empty cluster takes; say at least {_MIN_MEMORY}"
        )


def _check_files(installation: Installation) -> None:
    for name in installation.plugins:
        if problems := config_key_problems(name):
            raise InputError("--plugin", f"{name}: {problems[0]}")
    if sum(len(text.encode()) for text in installation.files.values()) > _MAX_BYTES:
        raise InputError("--plugin", "configuration and plugins are larger than a ConfigMap, which is 1 MiB")


def _check_extenders(config: SchedulerConfiguration) -> None:
    for index, extender in enumerate(config.extenders):
        tls = extender.tls_config
        if tls is not None and (tls.cert_file or tls.key_file or tls.ca_file):
            raise InputError(
                "--config",
                f"extenders[{index}].tlsConfig names files, which no pod would have; write what is in them "
                "as certData, keyData and caData",
            )
