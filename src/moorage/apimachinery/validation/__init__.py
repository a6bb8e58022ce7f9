"""Validation of parts that several kinds have: metadata, names, selectors, taints, amounts, addresses."""
