"""The versions of Kubernetes whose behaviour moorage can have, and their feature gates.

`kubernetes_version` is the table of what differs between them: everything else reads its named fields.
"""
