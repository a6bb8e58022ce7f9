"""Which pods are the same to a hint: those made from one template."""

from __future__ import annotations

import msgspec

from moorage.api.pod import Pod, Volume

# Amounts are all that an encoder does not know; they can be larger than any number that is encoded as one.
_encode = msgspec.msgpack.Encoder(enc_hook=hex).encode


def equivalence_key(pod: Pod) -> bytes:
    """Equal for pods that have namespace, labels, spec and managing owner in common.

    Volumes without anything that scheduling reads do not count: every pod has one with a name of its own, for
    its credentials. Where a volume has a claim made after the pod's name, that name does count.
    """
    spec = pod.spec
    read = [volume for volume in spec.volumes if volume != Volume(name=volume.name)]
    if len(read) != len(spec.volumes):
        spec = msgspec.structs.replace(spec, volumes=tuple(read))
    name = pod.name if any(volume.ephemeral is not None for volume in read) else ""
    return _encode((pod.namespace, pod.labels, spec, pod.controller, name))
