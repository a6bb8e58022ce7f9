"""Soaks: a cluster under churn for hours, in real or in virtual time, and what of it grows.

workloads       what users create, of every kind
users           create workloads at an even rate, and delete the oldest
followed_pods   pods as a watch sees them: how many, and how long they waited for a node
usage           memory, objects, descriptors and tasks of this process or another one
samples         a measurement of everything at one moment
trends          growth by least squares, and when it counts as a leak
clusters        the cluster that is measured: in this process, or in one of its own
run             a soak from its settings to its samples
logged_warnings what the cluster logs, counted
charts          the samples as drawings
"""
