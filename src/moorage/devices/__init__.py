"""Devices: what drivers publish, what claims hold, and how new claims are given theirs.

    slices -> inventory (pools, as each node sees them)
    claims -> holdings  (what is taken, and what is about to be)
    claim  -> requests  -> search (first fit, backtracking) -> allocation

The package decides and keeps books; the plugin DynamicResources calls it and says what is to be written.
"""
