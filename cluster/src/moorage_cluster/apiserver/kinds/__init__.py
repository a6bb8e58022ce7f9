"""One module per family of kinds: their strategies, and the catalog of served resources."""
