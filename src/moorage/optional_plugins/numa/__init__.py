"""Numa: nodes on which the kubelet's topology manager can align the pod with NUMA zones.

topology        NodeResourceTopology objects, and the zones of a node as they say
requests        which of a pod's requests are pinned to zones, for the pod and for each container
fingerprint     the hash by which an object names the pods that it accounts for
accounting      which pods on a node its object accounts for already
zone_rows       zones and pods that are not accounted for, by row, and the columns made of them
alignment       one node: whether the topology manager admits a pod
columns         the same for many nodes
combinations    sets of zones, in the order in which the topology manager prefers them
scoring         one node: the scoring strategies
column_scoring  the same for many nodes
arguments       the arguments, as scheduler-plugins names them
plugin          the plugin: filter, score, events
"""
