"""moorage's own version; those of Kubernetes are in `moorage.emulation`. Imports nothing."""

__version__ = "1.0.0"


def running_version() -> str:
    """The version in the process that is asked, which may be one on another machine."""
    return __version__
