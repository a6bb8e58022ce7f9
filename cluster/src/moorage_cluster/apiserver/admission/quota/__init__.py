"""Resource quotas: how much of what a namespace may use in all."""
