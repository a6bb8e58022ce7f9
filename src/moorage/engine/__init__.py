"""One scheduling cycle: a pod and a snapshot in, a decision with all its reasons out."""
