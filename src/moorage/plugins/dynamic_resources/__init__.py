"""DynamicResources: pods get the devices that their resource claims request.

    slices -> structured.inventory          (pools, as each node sees them, in structured.device_blocks)
    claims -> structured.allocated_devices  (allocated, or about to be: in_flight_allocations)
    claim  -> structured.requests -> structured.search (first fit, backtracking) -> allocation

Where each rule is, and in which forms. A change of one form is a change of all of them:

    rule                            all nodes                       incremental
    which devices a claim gets      structured (one form), run once per group of nodes with equal
                                    node_device_state, and kept in structured.search_results; the
                                    devices that it may take are kept in structured.candidates
    how many devices back an        device_totals                   device_totals, by what changed
    extended resource
    extended resources of nodes     node_extended_resources, extended_resources
    reserving and binding claims    binding, pod_claims (one form)

What Kubernetes versions differ in: structured.device_rules.

The package decides and keeps state; `plugin` calls it and returns what is written. Oracle: a brute-force
search in tests/plugins/dynamic_resources/structured/test_allocation_properties.py; incremental state against
a new one in tests/plugins/dynamic_resources/test_node_device_state.py. Recordings of kube-scheduler: dra-*,
partitions-*.
"""
