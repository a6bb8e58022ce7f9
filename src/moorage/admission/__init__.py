"""What an API server does with a new pod before a scheduler reads it.

`pod_creation` runs the steps in order: decoding (`apimachinery.schema`), defaults (`pods.defaults`),
admission plugins (`plugins`), preparation and validation (`pods`). The API server uses the same modules, and
adds the plugins that no decision depends on.
"""
