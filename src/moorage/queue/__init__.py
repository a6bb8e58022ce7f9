"""The scheduling queue: the order of attempts, and the events that requeue unschedulable pods."""
