"""The formats of traces by name, and the default unit: what options of commands need without the readers."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

DEFAULT_TRACE_UNIT: Final = "cpu=64,memory=256Gi"
"""What the machine has of which published amounts are shares."""


class TraceFormat(StrEnum):
    """A format of traces."""

    MOORAGE = "moorage"
    ALIBABA_2018 = "alibaba-2018"
    ALIBABA_GPU_2023 = "alibaba-gpu-2023"
    GOOGLE_2019 = "google-2019"
    AZURE_2019 = "azure-2019"
    AZURE_2020 = "azure-2020"
