"""Campaigns against the API server's data directory: kills, power failures, bad disks and damaged files.

writes           seeded writes, and what must be on disk after any part of them
file_operations  what SQLite did to files, and the files after any part of it
recording_vfs    a layer below SQLite that records writes, or lets them fail
recording        writes, done and recorded once
kills            a kill after each operation
power            a power failure after each operation
disk_errors      an error at each operation
damage           damaged files
killed_writers   processes that are killed while they write
served           a real server that is killed under clients over HTTPS
history          what clients asked and were told
linearizability  whether answers are those of objects that do one call after another
watch_checks     whether watchers saw each change once, in order
report           what came of a check
scratch          directories in memory
campaign         all checks, in several processes
"""
