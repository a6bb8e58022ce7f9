"""What the rules of all kinds of objects are made of: schemas, errors of fields and requests, validation.

Kubernetes' apimachinery has the same parts. The API server uses it for every kind, `admission` for pods.
"""
