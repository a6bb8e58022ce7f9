from __future__ import annotations

from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from moorage_cluster.apiserver.extensions.openapi_rules import schema_problems, unknown_formats
from moorage_cluster.apiserver.extensions.structural import CustomSchema
from tests.apiserver.extensions.definitions import of_spec, widget

TYPES = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "text", ""])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-2, 3)
    | st.sampled_from([0.5, "", "a", "(", "date", "set", "map"])
)
ANY_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)
SCALAR_KEYWORDS = st.sampled_from(
    [
        "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "multipleOf",
        "minItems", "maxItems", "minProperties", "maxProperties", "nullable", "default", "enum", "required",
        "uniqueItems", "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-int-or-string",
        "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource", "x-kubernetes-validations",
    ]
)  # fmt: skip


def inside(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Schemas around schemas, mostly well-formed, so that some are accepted."""
    lists = st.lists(inner, max_size=2)
    fields = st.dictionaries(st.sampled_from(["a", "metadata", "kind"]), inner, max_size=2)
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "properties": fields}, optional={"not": inner}),
        st.fixed_dictionaries({"type": st.just("object"), "additionalProperties": inner | st.booleans()}),
        st.fixed_dictionaries({"type": TYPES}, optional={"anyOf": lists, "oneOf": lists, "allOf": lists}),
        st.fixed_dictionaries(
            {"type": TYPES, "items": ANY_VALUES, "properties": ANY_VALUES, "anyOf": ANY_VALUES}
        ),
    )


LEAVES = st.builds(
    lambda name, more: {"type": name, **more},
    TYPES,
    st.dictionaries(SCALAR_KEYWORDS, ANY_VALUES, max_size=2),
)
SCHEMAS = st.recursive(LEAVES, inside, max_leaves=5)


@settings(max_examples=400, deadline=None)
@given(SCHEMAS, ANY_VALUES)
def test_a_schema_is_refused_or_works(schema: Any, value: Any) -> None:
    root = of_spec(schema)
    list(unknown_formats(root))
    if schema_problems(root, "schema", has_status=False):
        event("refused")
        return
    event("accepted")
    compiled = CustomSchema(root)
    assert compiled.shape.fields["spec"].fields.keys() == {"x"}
    decoded = compiled.decode(widget(spec={"x": value})).obj
    compiled.apply_defaults(decoded)
    compiled.validate(decoded)
