"""The chain of admission plugins: order, dispatch, refusals."""

from __future__ import annotations

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.chain import Chain
from moorage.admission.plugin import ANY, Call, Plugin
from moorage.http.api_error import ApiError
from tests.admission.harness import World, call_of, pod, refused, write


def test_plugins_are_called_in_order_and_only_for_what_they_handle() -> None:
    called: list[str] = []

    def noting(name: str, *handles: Call) -> Plugin:
        def admit(attributes: Attributes, reader: Reader) -> None:
            called.append(name)

        return Plugin(name, admit, handles)

    chain = Chain(
        [
            noting("everything new", Call("CREATE", ANY, ANY)),
            noting("pods", Call("UPDATE", "/pods"), Call("CREATE", "/pods")),
            noting("bindings", Call("CREATE", "/pods", "binding")),
            noting("new objects", Call("CREATE", ANY)),
        ]
    )
    for attributes, expected in (
        (write(pod()), ["everything new", "pods", "new objects"]),
        (write(pod(), subresource="binding"), ["everything new", "bindings"]),
        (write(pod(), operation="UPDATE"), ["pods"]),
        (write(pod(), operation="DELETE"), []),
        (write(pod()), ["everything new", "pods", "new objects"]),
    ):
        called.clear()
        chain.admit(attributes, World())
        assert called == expected, call_of(attributes)


def test_after_a_rejection_no_other_plugin_is_called() -> None:
    def refuse(attributes: Attributes, reader: Reader) -> None:
        raise ApiError(403, "Forbidden", "no")

    def change(attributes: Attributes, reader: Reader) -> None:
        attributes.obj["changed"] = True

    everything = (Call("CREATE", ANY),)
    attributes = write(pod())
    refused(
        Chain([Plugin("a", refuse, everything), Plugin("b", change, everything)]).admit, attributes, World()
    )
    assert "changed" not in attributes.obj
