"""What stands around the scheduler: leader election, metrics, events, health and their HTTPS server."""
