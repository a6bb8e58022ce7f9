"""The admission plugins that scheduling depends on: one file a plugin, named as in Kubernetes."""
