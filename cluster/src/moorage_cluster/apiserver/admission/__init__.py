"""One module per admission plugin, and the chain that calls them."""
