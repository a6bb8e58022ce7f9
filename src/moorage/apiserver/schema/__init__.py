"""The wire format of the built-in kinds: decoding, shapes, OpenAPI."""
