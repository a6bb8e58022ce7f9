"""NodeVolumeLimits: a CSI driver can attach a limited number of volumes to a node.

    plugin          extension points, events and hints
    csi_volumes     the CSI volumes behind claims and disks
    missing_drivers incremental, all nodes: which lack a driver that must be there
    volume_room     incremental, all nodes: how many more volumes a node takes at least, by counting claims
    volumes_in_use  which volumes are in use, looked up only where that room is not enough:
                    incremental, all nodes (`VolumesInUse`), and one node, also with hypothetical pods
                    (`NodeVolumesInUse`)

The forms are compared with each other and with plain counting in tests/plugins/node_volume_limits.
"""
