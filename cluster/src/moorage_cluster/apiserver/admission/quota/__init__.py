"""Resource quotas: the total usage that a namespace is limited to."""
