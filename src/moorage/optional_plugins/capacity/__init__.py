"""Capacity: elastic quotas. A namespace has a guarantee, borrows what others leave idle, and gives it back.

elastic_quota   the ElasticQuota of scheduler-plugins, and the annotations that make a hierarchy of them
quota_tree      all quotas: which are parts of others, what each may use, what is guaranteed to it
requests        what a pod counts with
usage           what the pods of each quota use, kept up to date by what changes
nominated       pods that wait for room, which count as well
columns         what quotas need to know of all pods, as columns
victims         which pods may be evicted for a pod, or for a group
across_nodes    victims on several nodes, for a pod that a quota refuses
plugin          PreFilter and Filter by quota; DefaultPreemption with these victims
status_writer   writes what is used into the status of ElasticQuotas
"""
