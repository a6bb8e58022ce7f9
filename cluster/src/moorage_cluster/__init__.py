"""A Kubernetes cluster on a laptop: API server, controllers, simulated nodes.

`local.LocalCluster` is all of it in one process; `apiserver.embedded.EmbeddedServer` the API server alone.
The scheduler, and the HTTP of both ends, are in `moorage`, which does without this package.
"""
