"""Simulated nodes: kubelets that admit, run, measure and evict pods; only what they tell is real."""
