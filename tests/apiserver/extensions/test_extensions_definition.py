from __future__ import annotations

from typing import Any

import pytest

from moorage.api.manifests import Manifest, copy
from moorage_cluster.apiserver.extensions.definition import (
    CLEANUP_FINALIZER,
    CustomResourceDefinitionStrategy,
    accepted,
    is_established,
    is_terminating,
    terminating,
)
from moorage_cluster.apiserver.resources import APIResource
from tests.apiserver.extensions.definitions import INTEGER, NOW, STRING, array, crd, obj, of_spec, version

STRATEGY = CustomResourceDefinitionStrategy()
AT = "spec.validation.openAPIV3Schema"
X = f"{AT}.properties[spec].properties[x]"
LABEL_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def messages_of(definition: Manifest) -> list[str]:
    return [str(error) for error in STRATEGY.validate(definition)]


def named(**names: Any) -> Manifest:
    definition = crd()
    definition["spec"]["names"] |= names
    return definition


def of_schema(schema: Manifest, **more: Any) -> Manifest:
    return crd(version(schema=schema, **more))


def with_columns(**column: Any) -> Manifest:
    return crd(version(additionalPrinterColumns=[column]))


def with_scale(**scale: Any) -> Manifest:
    return crd(version(subresources={"scale": scale}))


KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}

REFUSED: dict[str, tuple[Manifest, list[str]]] = {
    "another name": (
        crd() | {"metadata": {"name": "things.example.com"}},
        ['metadata.name: Invalid value: "things.example.com": must be spec.names.plural+"."+spec.group'],
    ),
    "a group without a dot": (
        crd(group="example") | {"metadata": {"name": "widgets.example"}},
        ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
    ),
    "another scope": (
        crd(scope="Global"),
        ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"'],
    ),
    "no scope": (crd(scope=""), ["spec.scope: Required value"]),
    "no storage version": (
        crd(version(storage=False)),
        [
            'spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,'
            '"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,'
            '"SelectableFields":null}]: must have exactly one version marked as storage version',
            "status.storedVersions: Invalid value: []: must have at least one stored version",
        ],
    ),
    "a bad version": (crd(version("V1")), [f'spec.versions[0].name: Invalid value: "V1": {LABEL_RULE}']),
    "no schema": (
        crd({"name": "v1", "served": True, "storage": True}),
        ["spec.versions[0].schema.openAPIV3Schema: Required value"],
    ),
    "a bad kind": (
        named(kind="My_Kind"),
        [
            'spec.names.kind: Invalid value: "My_Kind": may have mixed case, but should otherwise match: '
            + LABEL_RULE
        ],
    ),
    "a bad short name": (
        named(shortNames=["ok", "Not"]),
        [f'spec.names.shortNames[1]: Invalid value: "Not": {LABEL_RULE}'],
    ),
    "a list kind like the kind": (
        named(listKind="Widget"),
        ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
    ),
    "preserved as in the past": (
        crd(preserveUnknownFields=True),
        [
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        ],
    ),
    "a protected group": (
        crd(group="x.k8s.io") | {"metadata": {"name": "widgets.x.k8s.io"}},
        [
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have "
            'approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111'
        ],
    ),
    "an unknown conversion": (
        crd(conversion={"strategy": "Magic"}),
        ['spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"'],
    ),
    "a column of a wrong type": (
        with_columns(name="A", type="text", jsonPath="spec.x"),
        [
            'spec.additionalPrinterColumns[0].type: Invalid value: "text": '
            "must be one of boolean,date,integer,number,string",
            'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.x": '
            "must be a simple json path starting with .",
        ],
    ),
    "a scale elsewhere": (
        with_scale(specReplicasPath=".replicas"),
        [
            'spec.subresources.scale.specReplicasPath: Invalid value: ".replicas": '
            "should be a json path under .spec",
            "spec.subresources.scale.statusReplicasPath: Required value",
        ],
    ),
    "no type at the root": (
        of_schema({"properties": {}}),
        [f"{AT}.type: Required value: must not be empty at the root"],
    ),
    "no type of a field": (
        of_schema(of_spec({"description": "?"})),
        [f"{X}.type: Required value: must not be empty for specified object fields"],
    ),
    "an unknown type": (
        of_schema(of_spec({"type": "text"})),
        [
            f'{X}.type: Unsupported value: "text": supported values: "array", '
            '"boolean", "integer", "number", "object", "string"'
        ],
    ),
    "no items": (
        of_schema(of_spec({"type": "array"})),
        [f"{X}.items: Required value: must be specified"],
    ),
    "a type in anyOf": (
        of_schema(of_spec(STRING | {"anyOf": [STRING]})),
        [f"{X}.anyOf[0].type: Forbidden: must be empty to be structural"],
    ),
    "a field only in anyOf": (
        of_schema(obj() | {"anyOf": [{"properties": {"y": {"minimum": 1}}}]}),
        [
            f"{AT}.properties[y]: Required value: because it is defined in {AT}.anyOf[0].properties[y]",
        ],
    ),
    "properties and additional ones": (
        of_schema(of_spec(obj(a=STRING) | {"additionalProperties": STRING})),
        [f"{X}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    ),
    "restricted metadata": (
        of_schema(obj(metadata=obj(labels={"type": "object"}))),
        [
            f"{AT}.properties[metadata]: Forbidden: must not specify anything other than name and "
            "generateName, but metadata is implicitly specified"
        ],
    ),
    "a bad pattern": (
        of_schema(of_spec(STRING | {"pattern": "(?!a)"})),
        [
            f'{X}.pattern: Invalid value: "(?!a)": must be a valid regular expression, '
            "but isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?!`"
        ],
    ),
    "a default of another type": (
        of_schema(of_spec(INTEGER | {"default": "one"})),
        [f'{X}.default: Invalid value: "string":  in body must be of type integer: "string"'],
    ),
    "a default with unknown fields": (
        of_schema(of_spec(obj(a=STRING) | {"default": {"b": 1}})),
        [f'{X}.default: Invalid value: {{"b":1}}: must not have unknown fields'],
    ),
    "unique items": (
        of_schema(of_spec(array(STRING, uniqueItems=True))),
        [
            f"{X}.uniqueItems: Forbidden: uniqueItems cannot be set to true since "
            "the runtime complexity becomes quadratic"
        ],
    ),
    "a list map without its key": (
        of_schema(of_spec(array(obj(a=STRING), **KEYED))),
        [
            f'{X}.x-kubernetes-list-map-keys: Invalid value: ["name"]: '
            "entries must all be names of item properties"
        ],
    ),
    "a key that may be missing": (
        of_schema(of_spec(array(obj(name=STRING), **KEYED))),
        [
            f"{X}.items.properties[name].default: Required value: this property is in "
            "x-kubernetes-list-map-keys, so it must have a default or be a required property"
        ],
    ),
    "a set of objects": (
        of_schema(of_spec(array(obj(a=STRING), **{"x-kubernetes-list-type": "set"}))),
        [
            f"{X}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as "
            "item of a list with x-kubernetes-list-type=set"
        ],
    ),
    "a rule without text": (
        of_schema(of_spec(STRING | {"x-kubernetes-validations": [{"rule": " "}]})),
        [f"{X}.x-kubernetes-validations[0].rule: Required value: rule is not specified"],
    ),
    "keywords of wrong types": (
        of_schema(of_spec(array({"type": 5, "enum": "a"}))),
        [
            f"{X}.items.type: Invalid value: 5: must be of type string",
            f'{X}.items.enum: Invalid value: "a": must be of type array',
        ],
    ),
    "versions that differ are named": (
        crd(version("v1"), version("v2", obj(spec={}), storage=False)),
        [
            "spec.versions[1].schema.openAPIV3Schema.properties[spec].type: Required value: "
            "must not be empty for specified object fields"
        ],
    ),
    "a selectable list": (
        crd(version(schema=of_spec(array(STRING)), selectableFields=[{"jsonPath": ".spec.x"}])),
        [
            'spec.selectableFields[0].jsonPath: Invalid value: ".spec.x": must point to a field of type '
            "string, boolean or integer. Enum string fields and strings with formats are allowed."
        ],
    ),
    "nothing to select": (
        crd(version(selectableFields=[{"jsonPath": ".spec.y"}])),
        [
            'spec.selectableFields[0].jsonPath: Invalid value: ".spec.y": is an invalid path: '
            "does not refer to a valid field"
        ],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_reported_in_kubernetes_words(case: str) -> None:
    definition, expected = REFUSED[case]
    assert messages_of(definition) == expected


ACCEPTED = {
    "the usual": crd(),
    "several versions": crd(version("v1"), version("v1beta1", storage=False)),
    "an integer or a string": of_schema(
        of_spec({"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, STRING], "pattern": "^[0-9]+%?$"})
    ),
    "a list map": of_schema(of_spec(array(obj(name=STRING) | {"required": ["name"]}, **KEYED))),
    "rules that are not run": of_schema(
        of_spec(STRING | {"x-kubernetes-validations": [{"rule": "self != ''"}]})
    ),
    "what alternatives require": of_schema(
        obj(spec=obj(a=STRING, b=STRING) | {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]})
    ),
    "a name restricted": of_schema(obj(metadata=obj(name=STRING | {"maxLength": 10}))),
    "a webhook": crd(
        conversion={
            "strategy": "Webhook",
            "webhook": {
                "clientConfig": {"service": {"name": "s", "namespace": "n"}},
                "conversionReviewVersions": ["v1"],
            },
        }
    ),
    "everything preserved": of_schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_right_is_accepted(case: str) -> None:
    assert messages_of(ACCEPTED[case]) == []


def created(definition: Manifest) -> Manifest:
    definition = copy(definition)
    STRATEGY.default(definition)
    STRATEGY.prepare_create(definition)
    return definition


def established(definition: Manifest) -> Manifest:
    definition = created(definition)
    return definition | {"status": accepted(definition, (), NOW)}


def test_defaults_name_what_follows_from_the_kind() -> None:
    definition = named()
    del definition["spec"]["names"]["singular"], definition["spec"]["names"]["listKind"]
    del definition["spec"]["conversion"]
    STRATEGY.default(definition)
    assert definition["spec"] == crd()["spec"]


def test_a_definition_waits_for_its_objects_from_its_deletion_on() -> None:
    definition = created(crd())
    assert definition["metadata"] == {"name": "widgets.example.com", "generation": 1}
    assert definition["status"]["storedVersions"] == ["v1"]
    assert not is_terminating(definition)
    STRATEGY.prepare_delete(definition, NOW)
    assert is_terminating(definition)
    assert definition["metadata"]["finalizers"] == [CLEANUP_FINALIZER]
    assert definition["metadata"]["generation"] == 1
    (condition,) = definition["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Terminating", "InstanceDeletionPending")
    released = crd()
    STRATEGY.prepare_update(released, definition)
    assert "finalizers" not in released["metadata"]
    assert terminating(definition, NOW)["conditions"][0]["reason"] == "InstanceDeletionInProgress"


def test_a_definition_without_conflicts_is_established() -> None:
    definition = established(crd())
    assert is_established(definition)
    assert definition["status"] == {
        "acceptedNames": crd()["spec"]["names"],
        "storedVersions": ["v1"],
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": "2025-05-01T12:00:00Z",
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": "2025-05-01T12:00:00Z",
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
    }
    later = NOW.replace(year=2026)
    own = APIResource("example.com", "v1", "Widget", "widgets", True, short_names=("wd",))
    assert accepted(definition, [own], later) == definition["status"], "its own names are no conflict"


TAKEN = {
    "the kind": (
        APIResource("example.com", "v1", "Widget", "others", True),
        "KindConflict",
        '"Widget" is already in use',
    ),
    "the list's kind": (
        APIResource("example.com", "v1", "Wall", "walls", True),
        "ListKindConflict",
        '"WallList" is already in use',
    ),
    "the short name": (
        APIResource("example.com", "v1", "Other", "others", True, short_names=("wd",)),
        "ShortNamesConflict",
        '"wd" is already in use',
    ),
    "the singular": (
        APIResource("example.com", "v1", "Other", "others", True, singular="widget"),
        "SingularConflict",
        '"widget" is already in use',
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_names_that_others_have_are_not_accepted(case: str) -> None:
    other, reason, message = TAKEN[case]
    definition = created(named(listKind="WallList"))
    status = accepted(definition, [other], NOW)
    names, ready = status["conditions"]
    assert (names["status"], names["reason"], names["message"]) == ("False", reason, message)
    assert (ready["status"], ready["reason"]) == ("False", "NotAccepted")
    freed = accepted(definition | {"status": status}, (), NOW)
    assert [each["status"] for each in freed["conditions"]] == ["True", "True"]


def test_the_same_names_in_another_group_are_no_conflict() -> None:
    other = APIResource("example.org", "v1", "Widget", "widgets", True)
    assert accepted(created(crd()), [other], NOW)["conditions"][0]["status"] == "True"


CHANGES: dict[str, tuple[Manifest, list[str]]] = {
    "the kind": (named(kind="Gadget"), ['spec.names.kind: Invalid value: "Gadget": field is immutable']),
    "the scope": (crd(scope="Cluster"), ['spec.scope: Invalid value: "Cluster": field is immutable']),
    "a short name": (named(shortNames=["w"]), []),
    "a stored version that goes": (
        crd(version("v2")),
        [
            'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a '
            "storage version, and must remain in spec.versions until a storage migration ensures no data "
            "remains persisted in v1 and removes v1 from status.storedVersions"
        ],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changes(case: str) -> None:
    update, expected = CHANGES[case]
    update, old = copy(update), established(crd())
    STRATEGY.prepare_update(update, old)
    assert [str(error) for error in STRATEGY.validate_update(update, old)] == expected


def test_unknown_formats_are_mentioned_once() -> None:
    definition = of_schema(of_spec(STRING | {"format": "colour"}))
    assert STRATEGY.warnings(definition, None) == ['unrecognized format "colour"']
    assert STRATEGY.warnings(definition, definition) == []
