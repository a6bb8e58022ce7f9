"""InterPodAffinity: pods that must or should be near other pods, or apart from them, in both directions.

Where each rule is, and in which forms. A change of one form is a change of all of them:

    rule                            all nodes                       incremental
    required affinity,              filtering                       filtering
    anti-affinity, and that of      AffinityCounts                  IncrementalAffinityCounts, `_evaluate_all`
    existing pods                                                   one node alone in `_evaluate_one`
    preferred terms, both ways      scoring                         scoring
                                    CountedAffinityScores           IncrementalAffinityScores
    which pods a term matches       terms, topology_counts/pod_matcher (one form for all)
    what may help a rejected pod    plugin (`events` and its hints)

Oracle: tests/oracle/pod_affinity.py, compared in tests/test_columns_equal_oracle.py. Incremental against
counted: tests/plugins/topology_counts/test_incremental_counts.py.
Recordings of kube-scheduler: pod-affinity-*.
"""
