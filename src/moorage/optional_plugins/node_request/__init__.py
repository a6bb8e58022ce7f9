"""NodeRequest: asks for nodes when pods fit on none.

arguments      what a configuration says
demands        pods and groups that need a node
allowance      how many nodes of which shape may still be asked for
choice         which shape of several
packing        which nodes pods need: places on nodes that are asked for already, and on new ones
requested      nodes that are asked for and not ready yet
backoff        shapes that are not asked for after a failure
webhook        asks a web service
creation       creates nodes through the API server
requester      batches, requests, arrivals and failures
plugin         the post-filters
"""
