"""NodeResourcesFit and NodeResourcesBalancedAllocation: allocatable and requested resources.

Where each rule is, and in which forms. A change of one form is a change of all of them:

    rule                            all nodes                       one node
    whether a pod fits              fit `filter`                    fit `filter_node`
    LeastAllocated, MostAllocated,  scoring_strategies `on_all`     scoring_strategies `on_one`
    RequestedToCapacityRatio
    balanced allocation             balanced_allocation `score`     balanced_allocation `score_node`
    requested and allocatable       usage `usage`                   usage `usages_of`

There is no incremental form: results are cached by row (framework). Of what does not depend on the pod, what
is free on all nodes (`free_columns`) and their balance without a new pod are updated where rows change. Both
forms are compared in
tests/plugins/test_one_node.py. Oracle: tests/oracle/resources.py, compared in
tests/test_columns_equal_oracle.py. Recordings of kube-scheduler: capacity-ratio-*, *-allocated-*,
overhead-*, resources-*.
"""
