"""Chaos campaigns: thousands of short runs in which everything fails, each from a seed.

script          what happens in one run, as data: operations of users, and faults
scenarios       scripts from seeds
traffic         what a request is about, by which faults are addressed
network         a transport that injects the request faults of a script
cuttable_watch  a watch that breaks when its server is killed
watch_faults    a watch that injects the watch faults of a script
misbehaving     a plugin and an extender that fail as a script says
kubelets        kubelets and controllers, as far as scheduling sees them
world           an API server, users, kubelets and schedulers in virtual time
candidate       one scheduler process: an election, a scheduler, and its end
monitor         what must hold after every write
storage         claims and volumes, for the final checks
final_checks    what must hold when faults have stopped
quiet_logs      loggers that say nothing for a while
run             one run from a script to its violations
shrinking       a failing script to a short one
campaign        many runs in several processes
processes       tasks in several processes
durability      campaigns against the API server's data directory
"""
