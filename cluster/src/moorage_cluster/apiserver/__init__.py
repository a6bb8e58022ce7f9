"""An embedded Kubernetes API server that real clients accept."""
