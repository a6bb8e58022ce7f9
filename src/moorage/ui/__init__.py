"""The page: a cluster, its queue and every decision in a browser.

    sources      what is shown: a cluster, or files of recordings, simulations and shadow mode
    timeline     the state of nodes and pods, and the changes that led to it
    application  requests to documents; `session` and `security` say who may ask
    static       the page itself: modules that browsers load as they are, without a build

The server reads a cluster with the permissions of its kubeconfig, and a scheduler through the API of its
authenticated port. It is a process of its own, so that a page cannot slow a scheduler.
"""
