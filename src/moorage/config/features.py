"""The feature gates that a configuration's defaults and validation depend on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Feature gates, with the defaults of v1.36; each field is the gate's name in snake case."""

    storage_capacity_scoring: bool = False
    """VolumeBinding may score nodes by free storage, so its `shape` is allowed and has a default."""

    dra_scheduler_filter_timeout: bool = True
    """DynamicResources may end the search for devices on a node after `filterTimeout`."""

    dra_device_binding_conditions: bool = True
    """DynamicResources may wait for devices to become ready, for `bindingTimeout` at most."""

    dra_resource_claim_device_status: bool = True
    """Drivers report on devices in a claim's status; binding conditions need it."""

    node_declared_features: bool = True
    """The plugin NodeDeclaredFeatures is a default plugin."""

    gang_scheduling: bool = False
    """The plugin GangScheduling is a default plugin."""

    topology_aware_workload_scheduling: bool = False
    """The plugins TopologyPlacementGenerator and PodGroupPodsCount are default plugins."""

    @property
    def device_binding(self) -> bool:
        """Whether DynamicResources waits for binding conditions: that needs two gates."""
        return self.dra_device_binding_conditions and self.dra_resource_claim_device_status


DEFAULT_FEATURES = Features()
