"""GPUFragmentation: pods go where they leave the most GPUs of use for the pods that are to be expected.

arguments   the measured resource, and the expected pods, where a configuration has them
target      the expected pods: how many GPUs of no use they leave on nodes, for all nodes and for one
learned     the expected pods, as learned from the pods on nodes
columns     scores of all nodes by what pods request, updated where nodes changed
plugin      the score
"""
