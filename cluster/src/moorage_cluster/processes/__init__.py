"""Containers of simulated nodes that run as processes of this machine: `moorage up --run-containers`.

There is no isolation: a process has its user's rights, the machine's files and its network. What a container
would have for itself is replaced as far as an ordinary user can: volumes are directories, and the paths where
a container mounts them are rewritten in its command, its arguments and its environment; on Linux, each pod
has a loopback address of its own, which takes the place of `0.0.0.0` and `127.0.0.1` there.
"""
