"""Web services that filter, score, preempt and bind besides the plugins."""
