"""The client's end of the Kubernetes API: requests, errors, informers, all through a transport."""
