"""The key of a pod's equivalence class: hints return the same for all pods of a class."""

from __future__ import annotations

import msgspec

from moorage.api.pod import Pod, Volume

# Quantities are the only type the encoder does not know; they can exceed the largest encodable integer.
_encode = msgspec.msgpack.Encoder(enc_hook=hex).encode


def equivalence_key(pod: Pod, *, any_claims: bool = False, any_group: bool = False) -> bytes:
    """Equal for pods with the same namespace, labels, spec and managing owner.

    Volumes without any field that scheduling reads are left out: every pod has one with a unique name for its
    credentials. Where a volume has a claim named after the pod, the pod's name is part of the key.
    any_claims: whether the names of claims are left out, too. any_group: whether the group of pods is.
    """
    spec, name = pod.spec, ""
    if any_group and spec.scheduling_group is not None:
        spec = msgspec.structs.replace(spec, scheduling_group=None)
    if spec.volumes:
        read = [volume for volume in spec.volumes if volume.concerns_scheduling]
        if any_claims:
            read = [_with_any_claim(volume) for volume in read]
        elif any(volume.ephemeral is not None for volume in read):
            name = pod.name
        spec = msgspec.structs.replace(spec, volumes=tuple(read))
    return _encode((pod.namespace, pod.labels, spec, pod.controller, name))


def _with_any_claim(volume: Volume) -> Volume:
    claim = volume.persistent_volume_claim
    if claim is None:
        return volume
    unnamed = msgspec.structs.replace(claim, claim_name="")
    return msgspec.structs.replace(volume, persistent_volume_claim=unnamed)
