"""What if: a pod, a configuration and a cluster as they might be, evaluated beside what there is."""
