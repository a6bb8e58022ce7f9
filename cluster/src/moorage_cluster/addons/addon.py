"""The add-ons of a cluster on a laptop, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from moorage.api.files import load_documents, read_text
from moorage.plugins.coscheduling.plugin import Coscheduling
from moorage_cluster.addons import AddonName
from moorage_cluster.controllers.coscheduling import PodGroupController
from moorage_cluster.controllers.manager import MakeController
from moorage_cluster.manifest_files import FileObject


class Addon(NamedTuple):
    """What an add-on consists of.

    file: the file beside this module with its objects, which are created before all others. controllers: what
    keeps its objects. plugins: what the scheduler needs for it.
    """

    file: str
    controllers: tuple[MakeController, ...] = ()
    plugins: tuple[type[Any], ...] = ()

    def objects(self) -> list[FileObject]:
        """The objects of the add-on."""
        path = Path(__file__).with_name(self.file)
        return [FileObject(each, self.file) for each in load_documents(read_text(path), self.file)]


ADDONS: Final[Mapping[AddonName, Addon]] = {
    AddonName.POD_GROUPS: Addon("pod_groups.yaml", (PodGroupController,), (Coscheduling,)),
}
