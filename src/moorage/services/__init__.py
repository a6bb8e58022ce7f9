"""Services around the scheduler: leader election, metrics, events, health checks and their HTTPS server."""
