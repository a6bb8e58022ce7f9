"""The rules of pods: defaults, preparation, validation, and the totals of their resources."""
