"""The verbs: what is the same for every kind."""
