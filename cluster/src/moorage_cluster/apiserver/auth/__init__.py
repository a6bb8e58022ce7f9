"""Authentication and authorization: tokens, users, roles, reviews."""
