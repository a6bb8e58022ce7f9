"""What puts a scheduler into a cluster: its account, its permissions, its configuration, its processes."""
