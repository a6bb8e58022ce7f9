"""The client side of the Kubernetes API: requests, errors, informers, all through a transport."""
