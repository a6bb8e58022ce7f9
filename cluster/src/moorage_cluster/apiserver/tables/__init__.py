"""What `kubectl get` shows of each kind."""
