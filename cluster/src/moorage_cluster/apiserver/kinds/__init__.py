"""One module a family of kinds: their strategies, and the catalog of what is served."""
