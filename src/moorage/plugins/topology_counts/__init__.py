"""Pods counted by node and by topology domain: what PodTopologySpread and InterPodAffinity share.

    pod_matcher   which pods a selector, or several together, match; a CountQuery
    pod_counters  the pods that a CountQuery matches, by node row, updated as pods are added and removed
    row_count     the count of one query for one topology key
    domains       counts by node added up by topology domain
    incremental   counters and domains of one snapshot, shared by all equivalence classes

Every count exists in two forms: counted from the pod table (`domains.count_by_domain`, `add_existing_terms`)
and incremental (`pod_counters`, `domains.DomainCounter`). tests/plugins/topology_counts compares them over
random histories of a cluster.
"""
