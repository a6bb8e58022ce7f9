"""Coscheduling: the groups of scheduler-plugins, which pods name with a label.

They are scheduled by the rules of Kubernetes' own groups, in `gang_scheduling`. Here is what differs:

    plugin        arguments, how long members wait for each other, the check of spec.minResources
    resource_gap  what is free in the cluster, and the message that says what is missing
"""
