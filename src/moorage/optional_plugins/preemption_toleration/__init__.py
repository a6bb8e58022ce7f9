"""PreemptionToleration: a PriorityClass says from which priorities, and for how long, its pods are safe.

policy        the two annotations of a PriorityClass
tolerations   until when each pod on a node tolerates preemption, in columns
retries       pods that are tried again when a toleration ends
plugin        DefaultPreemption without the pods that tolerate
"""
