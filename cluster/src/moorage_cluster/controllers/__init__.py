"""Controllers: each reconciles the cluster with the specs of some kinds of objects; one file each."""
