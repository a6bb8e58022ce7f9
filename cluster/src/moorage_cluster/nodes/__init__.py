"""Simulated nodes: kubelets that admit, run, measure and evict pods; only their API requests are real."""
