"""What the volume plugins share: VolumeBinding, VolumeRestrictions, VolumeZone and NodeVolumeLimits.

persistent_volume_claims  how pods name claims, what annotations mean, how filters reject
node_columns              numbers by node that are kept up to date from pod to pod
node_masks                which nodes fulfil a condition, kept up to date in the same way
grouped_objects           objects by their node, storage class or another key
claim_users               which claims are in use on any node
csi_migration             in-tree volumes as the CSI drivers that replaced them see them
"""
