"""CustomResourceDefinitions: their kinds are served as if built in."""
