"""Dynamic resource allocation: device classes, slices and claims of resource.k8s.io/v1."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import field

from moorage.api.base import Condition, NodeSelector, Object, ResourceList, Struct
from moorage.api.quantity import Quantity


class CELSelector(Struct):
    """An expression over a device."""

    expression: str = ""


class DeviceSelector(Struct):
    """A way to choose devices."""

    cel: CELSelector | None = None


class OpaqueDeviceConfiguration(Struct):
    """Settings that only a driver understands."""

    driver: str = ""
    parameters: Any = None


class DeviceClassConfiguration(Struct):
    """Settings that come with a class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Struct):
    """The devices of a class."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceClassConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Object):
    """A kind of device that claims ask for by name."""

    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceAttribute(Struct):
    """One fact about a device; exactly one field is set."""

    int_value: int | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string_value: str | None = field(default=None, name="string")
    version_value: str | None = field(default=None, name="version")


class CapacityRange(Struct):
    """The amounts a consumer may take, from, to and in steps of."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Struct):
    """How a shareable capacity may be requested."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRange | None = None


class DeviceCapacity(Struct):
    """How much of something a device has."""

    value: Quantity = Quantity(0)
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct):
    """An amount in a counter set."""

    value: Quantity = Quantity(0)


class CounterSet(Struct):
    """Counters that the partitions of one device share."""

    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Struct):
    """What a partition takes of a counter set."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class DeviceTaint(Struct):
    """A reason not to use a device."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class DeviceTaintSelector(Struct):
    """Which devices a taint rule is for: all those that have what is given."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct):
    """A taint, and the devices that get it; without a selector, all devices."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Object):
    """A taint that an administrator gives to devices."""

    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class DeviceToleration(Struct):
    """Which device taints a request tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Device(Struct):
    """A device, or a partition of one."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False


class ResourcePool(Struct):
    """The pool a slice is a part of."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Struct):
    """Some devices of a pool and which nodes reach them."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool = False
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Object):
    """What a driver published."""

    spec: ResourceSliceSpec = ResourceSliceSpec()


class CapacityRequirements(Struct):
    """How much of a shareable device's capacity is asked for."""

    requests: ResourceList = {}


class DeviceSubRequest(Struct):
    """One alternative of a request, tried in order."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(Struct):
    """A request without alternatives."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(Struct):
    """What a claim asks for: exactly one thing, or the first available of several."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct):
    """What devices of several requests must have, or must not have, in common."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Struct):
    """Settings that come with a claim, for some of its requests or (none named) for all of them."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClaim(Struct):
    """Requests, constraints and settings of a claim."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Struct):
    """What a claim asks for."""

    devices: DeviceClaim = DeviceClaim()


class DeviceRequestAllocationResult(Struct):
    """One device given to one request."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: ResourceList = {}


class DeviceAllocationConfiguration(Struct):
    """Settings that a driver applies to allocated devices; `source`: whether from class or claim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueDeviceConfiguration | None = None


class DeviceAllocationResult(Struct):
    """All devices given to a claim, and the settings that go with them."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()


class AllocationResult(Struct):
    """What a claim was given, and where it can be used."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None


class ResourceClaimConsumer(Struct):
    """A consumer that a claim is reserved for."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Struct):
    """The status of an allocated device, reported by its driver."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Struct):
    """The status of a claim."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumer, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Object):
    """A request for devices."""

    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()
