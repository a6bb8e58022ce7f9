"""VolumeBinding: a pod's claims get their volumes on the node where the pod goes.

Every rule has one form, for all nodes at once:

    plugin        extension points, events and hints
    planning      what each node could give to the claims of a pod
    matching      existing volumes for claims, chosen as the PV controller does
                  (api/persistent_volumes.py)
    provisioning  new volumes: allowed topologies and storage capacity
    scoring       how much of a node's storage would be used
    reservation   assumed in memory in reserve, written and waited for in pre_bind

One node alone is compared with all nodes in tests/plugins/volumes/volume_objects.py (`ask`). Recordings of
kube-scheduler: late-binding-*, provisioning-*, volumes-*.
"""
