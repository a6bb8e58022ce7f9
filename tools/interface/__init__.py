"""What users may depend on, read from the source: names, options, settings, metrics, log lines and more.

Each module finds some kinds of facts; `kinds` has all of them. `listing` keeps them, in
tests/stability/interface, with the version since which each is as it is: `python -m tools.interface` brings
the listings up to date.
"""
