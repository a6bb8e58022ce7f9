"""Recordings from a scheduler's log at -v=10.

    lines -> entries -> happenings -> steps

`entries` reads klog's formats and `happenings` what a scheduler's messages mean. `pod_lives` and
`logged_nodes` find the objects that are meant, `cluster_in_log` follows what comes and goes, and `recording`
makes the steps.
"""
