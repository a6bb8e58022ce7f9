"""The rules for plugins, by topic; `CHECKS` in `moorage.testing.checking` lists them all."""
