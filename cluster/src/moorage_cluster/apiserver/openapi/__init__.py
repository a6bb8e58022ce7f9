"""OpenAPI documents of what is served, from the wire format: versions 2 and 3, as JSON and protobuf."""
