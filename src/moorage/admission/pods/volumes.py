"""Validation of a pod's volumes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.admission.pods.references import (
    IN_FILES,
    validate_field_reference,
    validate_resource_reference,
)
from moorage.api.manifests import Manifest
from moorage.api.names import dns_label_problems, dns_subdomain_problems
from moorage.api.quantity import parse_quantity
from moorage.apimachinery.fields import (
    FieldError,
    complaints,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.apimachinery.validation.checks import check_driver_name
from moorage.apimachinery.validation.claim_specs import check_claim_spec
from moorage.apimachinery.validation.metadata import validate_annotations, validate_labels
from moorage.apimachinery.validation.paths import check_file_path, check_relative_path, may_leave
from moorage.apimachinery.validation.volume_sources import check_host_path, check_nfs, check_token_seconds

_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_TAKEN: Final = "conflicting duplicate paths"

_NEEDED: Final[dict[str, tuple[str, ...]]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "glusterfs": ("endpoints", "path"),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("monitors", "image"),
    "cinder": ("volumeID",),
    "cephfs": ("monitors",),
    "quobyte": ("volume",),
    "flexVolume": ("driver",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "azureDisk": ("diskName", "diskURI"),
    "scaleIO": ("gateway", "system", "volumeName"),
    "iscsi": ("targetPortal", "iqn"),
    "nfs": ("server", "path"),
}
"""The required fields of volume types that have no other validation."""


def validate_volumes(
    volumes: list[Manifest], pod_name: str, path: str, *, in_pod: bool
) -> tuple[dict[str, Manifest], list[FieldError]]:
    """The valid volumes by name, and the errors of the others; `pod_name` is empty if there is no pod."""
    errors: list[FieldError] = []
    usable: dict[str, Manifest] = {}
    made = {f"{pod_name}-{volume.get('name', '')}" for volume in volumes if "ephemeral" in volume}
    for index, volume in enumerate(volumes):
        where = f"{path}[{index}]"
        name = volume.get("name", "")
        problems = _validate_source(volume, name, pod_name, where, in_pod=in_pod)
        if not name:
            problems.append(required(f"{where}.name"))
        elif wrong := dns_label_problems(name):
            problems += complaints(f"{where}.name", name, wrong)
        if name in usable:
            problems.append(duplicate(f"{where}.name", name))
        if problems:
            errors += problems
        else:
            usable[name] = volume
        claim = volume.get("persistentVolumeClaim")
        if claim and pod_name and claim.get("claimName") in made:
            problem = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{where}.persistentVolumeClaim.claimName", claim["claimName"], problem))
    return usable, errors


def _validate_source(
    volume: Manifest, name: str, pod_name: str, path: str, *, in_pod: bool
) -> list[FieldError]:
    kinds = [kind for kind in volume if kind != "name"]
    if not kinds:
        return [required(path, "must specify a volume type")]
    errors: list[FieldError] = []
    # Of several types, the first in a fixed order is validated and the others are errors.
    if len(kinds) > 1:
        kinds.sort(key=lambda kind: (kind != "emptyDir", kind != "hostPath"))
        for kind in kinds[1:]:
            errors.append(forbidden(f"{path}.{kind}", "may not specify more than 1 volume type"))
    kind = kinds[0]
    source = volume[kind]
    if (check := _CHECKS.get(kind)) is not None:
        errors += check(source, f"{path}.{kind}")
    else:
        for key in _NEEDED.get(kind, ()):
            if not source.get(key):
                errors.append(required(f"{path}.{kind}.{key}"))
    if kind == "ephemeral" and pod_name and name:
        claim = f"{pod_name}-{name}"
        for problem in dns_subdomain_problems(claim):
            errors.append(invalid(f"{path}.name", name, f'PVC name "{claim}": {problem}'))
    if kind == "image" and in_pod and not source.get("reference"):
        errors.append(required(f"{path}.image.reference"))
    return errors


def _mode_errors(mode: int | None, path: str) -> list[FieldError]:
    return [] if mode is None or 0 <= mode <= 0o777 else [invalid(path, mode, _MODE)]


def _empty_dir(source: Manifest, path: str) -> list[FieldError]:
    if (limit := source.get("sizeLimit")) and parse_quantity(limit) < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _git_repo(source: Manifest, path: str) -> list[FieldError]:
    errors = [] if source.get("repository") else [required(f"{path}.repository")]
    return errors + check_relative_path(source.get("directory", ""), f"{path}.directory")


def _secret(source: Manifest, path: str) -> list[FieldError]:
    errors = [] if source.get("secretName") else [required(f"{path}.secretName")]
    return errors + _mode_errors(source.get("defaultMode"), f"{path}.defaultMode") + _items(source, path)


def _config_map(source: Manifest, path: str) -> list[FieldError]:
    errors = [] if source.get("name") else [required(f"{path}.name")]
    return errors + _mode_errors(source.get("defaultMode"), f"{path}.defaultMode") + _items(source, path)


def _items(source: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, item in enumerate(source.get("items") or ()):
        place = item.get("path", "")
        if not item.get("key"):
            errors.append(required(f"{path}.items[{index}].key"))
        if not place:
            errors.append(required(f"{path}.items[{index}].path"))
        if may_leave(place):
            errors += check_file_path(place, f"{path}.items[{index}].path")
        if "mode" in item:
            errors += _mode_errors(item["mode"], f"{path}.items[{index}].mode")
    return errors


def _downward(source: Manifest, path: str) -> list[FieldError]:
    errors = _mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
    for file in source.get("items") or ():
        errors += _downward_file(file, path)
    return errors


def _downward_file(file: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    place = file.get("path", "")
    if not place:
        errors.append(required(f"{path}.path"))
    if may_leave(place):
        errors += check_file_path(place, f"{path}.path")
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        errors += validate_field_reference(field, IN_FILES, f"{path}.fieldRef")
        if resource is not None:
            problem = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", problem))
    elif resource is not None:
        errors += validate_resource_reference(resource, f"{path}.resourceFieldRef", needs_container=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    if "mode" in file:
        errors += _mode_errors(file["mode"], f"{path}.mode")
    return errors


def _projected(source: Manifest, path: str) -> list[FieldError]:
    errors = _mode_errors(source.get("defaultMode"), f"{path}.defaultMode")
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources") or ()):
        where = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (part := projection.get(kind)) is not None:
                if not part.get("name"):
                    errors.append(required(f"{where}.{kind}.name"))
                errors += _items(part, f"{where}.{kind}")
                for item in part.get("items") or ():
                    if (place := item.get("path", "")) in taken:
                        errors.append(invalid(path, part.get("name", ""), _TAKEN))
                    elif place:
                        taken.add(place)
        if (part := projection.get("downwardAPI")) is not None:
            for file in part.get("items") or ():
                errors += _downward_file(file, f"{where}.downwardAPI")
                if (place := file.get("path", "")) in taken:
                    errors.append(invalid(path, place, _TAKEN))
                elif place:
                    taken.add(place)
        if (token := projection.get("serviceAccountToken")) is not None:
            errors += _token(token, path, f"{where}.serviceAccountToken")
        if len(projection) > 1:
            errors.append(forbidden(where, "may not specify more than 1 volume type per source"))
    return errors


def _token(token: Manifest, volume_path: str, path: str) -> list[FieldError]:
    errors = check_token_seconds(token.get("expirationSeconds", 0), f"{path}.expirationSeconds")
    if not token.get("path"):
        errors.append(required(f"{volume_path}.path"))
    elif may_leave(token["path"]):
        errors += check_file_path(token["path"], f"{volume_path}.path")
    return errors


def _csi(source: Manifest, path: str) -> list[FieldError]:
    errors = check_driver_name(source.get("driver", ""), f"{path}.driver")
    if (secret := source.get("nodePublishSecretRef")) is not None and not secret.get("name"):
        errors.append(required(f"{path}.nodePublishSecretRef.name"))
    return errors


def _image(source: Manifest, path: str) -> list[FieldError]:
    policy = source.get("pullPolicy", "")
    if not policy:
        return [required(f"{path}.pullPolicy")]
    if policy not in _PULL_POLICIES:
        return [not_supported(f"{path}.pullPolicy", policy, _PULL_POLICIES)]
    return []


def _ephemeral(source: Manifest, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    where = f"{path}.volumeClaimTemplate"
    if template is None:
        return [required(where)]
    meta = template.get("metadata") or {}
    errors = validate_annotations(meta.get("annotations") or {}, f"{where}.metadata.annotations")
    errors += validate_labels(meta.get("labels") or {}, f"{where}.metadata.labels")
    for key in meta:
        if key not in ("annotations", "labels"):
            errors.append(forbidden(f"{where}.metadata.{key}", "cannot be set"))
    return errors + check_claim_spec(template.get("spec") or {}, f"{where}.spec")


_CHECKS: Final[dict[str, Callable[[Manifest, str], list[FieldError]]]] = {
    "emptyDir": _empty_dir,
    "hostPath": check_host_path,
    "gitRepo": _git_repo,
    "secret": _secret,
    "configMap": _config_map,
    "downwardAPI": _downward,
    "projected": _projected,
    "nfs": check_nfs,
    "csi": _csi,
    "image": _image,
    "ephemeral": _ephemeral,
}
