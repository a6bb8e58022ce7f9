"""Server-side apply, and the tracking of field managers."""

from moorage_cluster.apiserver.patches.apply.fieldset import NOTHING, FieldSet
from moorage_cluster.apiserver.patches.apply.server_side import apply, check_declared, track_update

__all__ = ["NOTHING", "FieldSet", "apply", "check_declared", "track_update"]
