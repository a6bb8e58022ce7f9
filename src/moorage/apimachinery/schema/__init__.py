"""The wire format of the built-in kinds: decoding, strictness, and the shapes by which patches merge."""

from moorage.apimachinery.schema.builtin import BuiltinSchema, schema_of
from moorage.apimachinery.schema.quantities import canonical_quantity

__all__ = [
    "BuiltinSchema",
    "canonical_quantity",
    "schema_of",
]
