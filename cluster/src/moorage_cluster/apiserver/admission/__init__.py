"""One file an admission plugin, and the chain of them."""
