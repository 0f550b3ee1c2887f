"""An FX graph in the form that the importer takes: tensors in, tensors out.

Tensor constants become further arguments, arguments that are no tensors go, and of the results only the tensors stay;
what else is returned is put back after the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from .compiled_ops import unusual_tensor
from .importer import output_nodes

Runner = Callable[[list], list]
"""From the list of the graph's arguments, which it empties, to the list of its results."""


def constants_to_arguments(graph: fx.GraphModule) -> list[torch.Tensor]:
    """Makes each tensor that the graph holds a further argument, and drops arguments that are no tensors."""
    placeholders = graph.graph.find_nodes(op="placeholder")
    for node in placeholders:
        if not isinstance(node.meta.get("val"), torch.Tensor):
            graph.graph.erase_node(node)
    values: list[torch.Tensor] = []
    for node in graph.graph.find_nodes(op="get_attr"):
        value = getattr(graph, str(node.target))
        with graph.graph.inserting_before(_first_operation(graph.graph)):
            argument = graph.graph.placeholder(f"constant_{len(values)}")
        argument.meta["val"] = node.meta.get("val", value)
        node.replace_all_uses_with(argument)
        graph.graph.erase_node(node)
        values.append(value)
    return values


def _first_operation(graph: fx.Graph) -> fx.Node:
    return next(node for node in graph.nodes if node.op != "placeholder")


@dataclass(frozen=True)
class Argument:
    """A result that is an argument and no tensor (a process group, for one), by its number."""

    number: int


@dataclass(frozen=True)
class Place:
    """A result that is a tensor, by its number among those that the program returns."""

    number: int


def keep_tensor_outputs(graph: fx.GraphModule) -> list[object]:
    """Leaves the tensors among the results; returns all results, a `Place` for each tensor."""
    places = {node: number for number, node in enumerate(graph.graph.find_nodes(op="placeholder"))}
    returned: list[object] = []
    tensors: list[fx.Node] = []
    for value in output_nodes(graph.graph):
        if value in places and not isinstance(value.meta.get("val"), torch.Tensor):
            returned.append(Argument(places[value]))
        elif isinstance(value, fx.Node):
            returned.append(Place(len(tensors)))
            tensors.append(value)
        else:
            returned.append(value)
    (output,) = graph.graph.find_nodes(op="output")
    output.args = (tuple(tensors),)
    return returned


def passed_through(returned: Sequence[object]) -> list[int]:
    """The numbers of the arguments that are results; none of them is a tensor, so holding on to them costs nothing."""
    return [value.number for value in returned if isinstance(value, Argument)]


def put_back(returned: Sequence[object], results: Sequence[object], passed: Mapping[int, object]) -> list:
    """A call's results, from those of the program and the arguments that pass through."""
    return [
        results[value.number]
        if isinstance(value, Place)
        else passed[value.number]
        if isinstance(value, Argument)
        else value
        for value in returned
    ]


def left_out(graph: fx.GraphModule) -> str | None:
    """Why PyTorch runs the graph; None if it is compiled."""
    unusual = unusual_tensor(graph.graph)
    return _left_operation(graph) or (
        f"it has a tensor of {unusual.dtype}, {unusual.layout}" if unusual is not None else None
    )


def _left_operation(graph: fx.GraphModule) -> str | None:
    """The first operation that takes functions, such as `torch.cond`, or an object that is an argument of the graph."""
    for node in graph.graph.nodes:
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            return f"it calls {node.target}, which takes functions"
        opaque = [one for one in node.all_input_nodes if one.op == "placeholder" and _is_opaque(one)]
        if opaque and node.op != "output":
            return f"it calls {node.target}, which takes the object {opaque[0]}"
    return None


def _is_opaque(node: fx.Node) -> bool:
    return not isinstance(node.meta.get("val"), torch.Tensor | int | float | bool | None)


def left_to_pytorch(graph: fx.GraphModule) -> Runner:
    """PyTorch runs it."""

    def call(arguments: list) -> list:
        inputs = list(arguments)
        arguments.clear()
        return list(graph(*inputs))

    return call
