"""The key of a pod's equivalence class: hints return the same for all pods of a class."""

from __future__ import annotations

import msgspec

from moorage.api.pod import Pod, Volume

# Quantities are the only type the encoder does not know; they can exceed the largest encodable integer.
_encode = msgspec.msgpack.Encoder(enc_hook=hex).encode


def equivalence_key(pod: Pod) -> bytes:
    """Equal for pods with the same namespace, labels, spec and managing owner.

    Volumes without any field that scheduling reads are left out: every pod has one with a unique name for its
    credentials. Where a volume has a claim named after the pod, the pod's name is part of the key.
    """
    spec = pod.spec
    read = [volume for volume in spec.volumes if volume != Volume(name=volume.name)]
    if len(read) != len(spec.volumes):
        spec = msgspec.structs.replace(spec, volumes=tuple(read))
    name = pod.name if any(volume.ephemeral is not None for volume in read) else ""
    return _encode((pod.namespace, pod.labels, spec, pod.controller, name))
