"""What happens over time: a workload on a cluster, with the production scheduler, in virtual time."""
