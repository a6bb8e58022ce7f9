"""LoadAware: pods avoid nodes that are really in use, whatever the pods there request.

arguments     the arguments, and what is allowed
readings      the usage of nodes as objects: of metrics.k8s.io, and as the plugin keeps it
sources       where usage is read: metrics.k8s.io, or a Prometheus server
polling       reads it again and again, and drops what is too old
estimates     what a pod will use, by its requests
usage         the predicted use of each node, in columns
plugin        a filter and a score by that
"""
