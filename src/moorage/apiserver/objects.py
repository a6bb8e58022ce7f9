"""Objects as the server keeps them: plain JSON values, never changed once stored, only replaced."""

from moorage.api.manifests import Manifest, annotations_of, child, copy, labels_of, metadata

__all__ = ["Manifest", "annotations_of", "child", "copy", "labels_of", "metadata"]
