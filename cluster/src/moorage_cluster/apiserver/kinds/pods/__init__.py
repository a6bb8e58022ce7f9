"""Pods in a server: strategy, updates, subresources; `moorage.admission.pods` has the rest."""
