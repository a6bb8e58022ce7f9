"""The Python API for notebooks and research: clusters, simulations and plans without a command line."""
