"""New groups of pods: their fields, and creating one without a server."""
