"""The documentation site: what `make docs` does.

`sources` copies the pages of the repository, with their links changed; `reference` adds pages that are
generated from the source of moorage; Sphinx builds them with `docs/conf.py`; `built` checks the result.
"""
