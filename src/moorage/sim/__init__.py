"""Scheduling without a cluster: simulations, and replays of recorded decisions."""
