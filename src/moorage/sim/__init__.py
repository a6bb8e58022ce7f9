"""What people run without a cluster: replays of recorded decisions."""
