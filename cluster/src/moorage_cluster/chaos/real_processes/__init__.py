"""Chaos campaigns over real processes: an API server and two schedulers over HTTPS on loopback.

scenarios       what is done to which process and when, from a seed
process         one process that is started again when it ends, its status, memory and descriptors
disk            a data directory that can become full
deployment      the API server, its accounts, two schedulers
faults          does to processes what a plan says
users           create and delete pods, and remember what was acknowledged
large_objects   what a full disk has no room for
observer        follows nodes and pods by watches
audit_trail     reads in the API server's audit log who has written, and when
final_checks    what must hold when faults have stopped
run             one run from a plan to its violations
"""
