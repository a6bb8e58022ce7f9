from __future__ import annotations

import pytest

from moorage.apimachinery.errors import ApiError
from moorage_cluster.apiserver.selector_parsing import parse_label_selector
from tests.apiserver.client import Cluster

BAD_LABEL_SELECTORS = {
    "no list": ("app in x", "unable to parse requirement: found 'x' expected: '('"),
    "nothing after in": ("app in", "unable to parse requirement: found '' expected: '('"),
    "value": ("app=-", 'Invalid value: "-": a valid label must be an empty string'),
    "value in a list": ("app in (a, -)", 'Invalid value: "-": a valid label must be an empty string'),
    "key": ("-=x", 'key: Invalid value: "-": name part must consist of alphanumeric characters'),
}


@pytest.mark.parametrize(("text", "message"), BAD_LABEL_SELECTORS.values(), ids=BAD_LABEL_SELECTORS)
def test_bad_label_selector(text: str, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        parse_label_selector(text)
    assert message in str(refused.value)


UNKNOWN_FIELDS = {
    "kind without fields": (
        "/api/v1/configmaps",
        '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
    "kind with fields": ("/api/v1/pods", "field label not supported: spec.x"),
    "jobs": ("/apis/batch/v1/jobs", 'field label "spec.x" not supported for Job'),
    "slices": (
        "/apis/resource.k8s.io/v1/resourceslices",
        "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x",
    ),
}


@pytest.mark.parametrize(("path", "message"), UNKNOWN_FIELDS.values(), ids=UNKNOWN_FIELDS)
def test_unknown_field(cluster: Cluster, path: str, message: str) -> None:
    """The message is all there is: kubectl itself says what it was looking for."""
    answer = cluster.get(path, fieldSelector="spec.x=1")
    assert (answer.code, answer.message) == (400, message)
