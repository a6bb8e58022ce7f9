"""Plans: what would fit, what nodes to buy, what happens when nodes go. Nothing here changes a cluster.

Every plan is made on a `Trial`: the objects of a cluster with the production engine, in which pods are placed
and evicted on paper. The functions take objects and settings, and return results that are typed and ordered.
"""
