"""PodTopologySpread: pods that match a selector are spread over the domains of a topology key.

Where each rule is, and in which forms. A change of one form is a change of all of them:

    rule                            all nodes                       incremental
    DoNotSchedule: maxSkew,         filtering                       filtering
    minDomains, inclusion policies  Spread, count_spreads           IncrementalSpread
    ScheduleAnyway: scores          scoring                         scoring
                                    CountedSpreadScores             IncrementalSpreadScores, by cells
    domains of several keys         topology (shared by all templates with these keys)
    which constraints a pod has     constraints (one form for all; also the default constraints)
    what may help a rejected pod    plugin (`events` and its hints)

Oracle: tests/oracle/topology_spread.py, compared in tests/test_columns_equal_oracle.py. Incremental against
counted: tests/plugins/topology_counts/test_incremental_counts.py. Recordings of kube-scheduler: *spread-*.
"""
