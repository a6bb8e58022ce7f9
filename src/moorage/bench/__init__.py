"""Workloads in the format of Kubernetes' scheduler_perf, run and measured."""
