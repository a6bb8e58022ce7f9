"""How much more fits, which nodes to buy, drain or empty: `moorage plan`."""
