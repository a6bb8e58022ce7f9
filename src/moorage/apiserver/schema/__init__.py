"""The wire format of the built-in kinds: decoding, shapes, OpenAPI."""

from moorage.apiserver.schema.builtin import BuiltinSchema, schema_of
from moorage.apiserver.schema.quantities import canonical_quantity
from moorage.apiserver.schema.strictness import (
    duplicate_fields,
    strict_decoding_error,
    strictness_problems,
)

__all__ = [
    "BuiltinSchema",
    "canonical_quantity",
    "duplicate_fields",
    "schema_of",
    "strict_decoding_error",
    "strictness_problems",
]
