"""The wire format of the built-in kinds: decoding, strictness, and the shapes by which patches merge."""

from moorage_cluster.apiserver.schema.builtin import BuiltinSchema, schema_of
from moorage_cluster.apiserver.schema.quantities import canonical_quantity

__all__ = [
    "BuiltinSchema",
    "canonical_quantity",
    "schema_of",
]
