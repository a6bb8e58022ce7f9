"""FairShare: the next decision is for the owner with the smallest share of the cluster for its weight.

arguments   the arguments, and what is valid of them
usage       what one owner has of each resource, and had: past use fades with a half-life
capacity    what the cluster has of each resource
weights     the weights of owners, from arguments and annotations
shares      the share of each owner: follows pods, nodes and weights
gauges      the metrics: shares by owner
turns       exceptions from the order by share, so that no owner waits for ever
plugin      the order of the queue: a sub-queue for each owner
"""
