"""What the volume plugins share: VolumeBinding, VolumeRestrictions, VolumeZone and NodeVolumeLimits.

persistent_volume_claims  how pods name claims, what annotations mean, how filters reject
node_columns              numbers by node that are kept up to date from pod to pod
csi_migration             in-tree volumes as the CSI drivers that replaced them see them
"""
