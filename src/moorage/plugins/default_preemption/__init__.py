"""DefaultPreemption: make room for a pod by evicting pods of lower priority.

Where each rule is, and in which forms. A change of one form is a change of all of them:

    rule                            all nodes                       one node
    which pods are victims          plugin, victims                 single_node
                                    `select_victims_on_nodes`       SingleNodeDryRun
    reprieve order, importance      victims                         single_node `lower_pods`
    PDB violations                  budgets `pdb_violations`        budgets `pdb_violations_on_node`
    which node is picked            candidate_ranking (one form)
    which nodes are evaluated       candidate_ranking `find_candidates`, dry_run (one form)
    eligibility, nomination         plugin (one form)
    extenders that preempt          extenders (one form)

The incremental form is `cache`: results by row for an equivalence class, invalidated by what changed. It runs
the one-node form on few rows and the form for all nodes on many; both are compared over random histories in
tests/plugins/default_preemption/test_preemption_cache.py.
Recordings of kube-scheduler: preemption-*, preemption-hard-*.
"""
