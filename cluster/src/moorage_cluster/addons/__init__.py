"""What a cluster can have besides Kubernetes itself: custom resources, with their controllers and plugins."""

from enum import StrEnum


class AddonName(StrEnum):
    """The add-ons that there are."""

    POD_GROUPS = "pod-groups"
