"""Who may do what: tokens, users, roles, reviews."""
