"""`mlir_fusion.export`: a program of torch.export, compiled ahead of time into one file.

    mlir_fusion.export(torch.export.export(model, (x,)), "model.mfp", fusion_type="dataflow")
    model = mlir_fusion.load("model.mfp")                       # in another process: nothing is compiled

The file holds the host program (MLIR, and as code), the kernels' code (PTX, or native objects for this kind of CPU),
the structure of arguments and results, and the weights. driver/package.py has the format, load.py the other end.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from ..driver.build import Artifact, disk_cache
from ..driver.fingerprint import versions
from ..driver.kernel_code import PtxCode
from ..driver.native_objects import header_of
from ..driver.options import Options, Settings
from ..driver.package import ALIGNMENT, WEIGHTS, Package, write
from ..driver.programs import compile_host
from ..driver.runner import print_module
from ..driver.scope import capture
from ..runtime.dtypes import dtype_name
from ..targets import cpu
from ..targets.target import Target
from .decompositions import decomposition_table
from .graph_build import compile_graph
from .importer import Imported, name_arguments, output_nodes, program_device

MUTATIONS = (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
RESULTS = (OutputKind.USER_OUTPUT, *MUTATIONS)


def export(
    program: ExportedProgram,
    path: str | Path,
    *,
    fusion_type: str | None = None,
    target: str | None = None,
    enable_options: Sequence[str] = (),
    disable_options: Sequence[str] = (),
) -> None:
    """Compiles an exported program and writes it to `path`.

    Options as `mlir_fusion.compile` has them. Raises ValueError for an option that there is not, and for a program with
    sizes that are symbols.
    """
    said = {
        "fusion_type": fusion_type,
        "target": target,
        "enable_options": enable_options,
        "disable_options": disable_options,
    }
    settings = capture(Settings.from_keywords(said, "export")).settings_now()
    program = program.run_decompositions(decomposition_table())
    _check(program)
    inputs, outputs = _inputs(program), _outputs(program)
    graph = _only_tensors(program.graph_module)
    device = program_device([node.meta["val"] for node in graph.find_nodes(op="placeholder")])
    options = settings.apply(Options(target="cpu" if device.type == "cpu" else Target.detect().name))
    imported, artifact = compile_graph(graph, options)
    names = [str(one.get("user", one.get("weight"))) for one in inputs if "value" not in one]
    name_arguments(artifact.host, names)
    weights, content = _weights(program)
    compiled = compile_host(artifact.host, disk=disk_cache(options))
    host_code = {"function": compiled.function, "helpers": compiled.helpers}
    header = {
        "versions": versions(),
        "target": options.target,
        "machine": cpu.host_features() if options.target == "cpu" else "",
        "inputs": inputs,
        "outputs": outputs,
        "device": device.type,
        "in_spec": _text(program.call_spec.in_spec),
        "out_spec": _text(program.call_spec.out_spec),
        "weights": weights,
        **_dtypes(imported),
        **_kernels(artifact),
        **{name: header_of(one) for name, one in host_code.items()},
    }
    sections = {
        "host": print_module(artifact.host.operation).encode(),
        **{name: one.code for name, one in host_code.items()},
        **_code(artifact),
        WEIGHTS: content,
    }
    write(path, Package(header, sections))


def _text(spec: pytree.TreeSpec | None) -> str:
    assert spec is not None, "torch.export records them"
    return pytree.treespec_dumps(spec)


def _check(program: ExportedProgram) -> None:
    for node in program.graph.nodes:
        values = pytree.tree_leaves(node.meta.get("val"))
        symbolic = [value for value in values if isinstance(value, torch.SymInt)]
        symbolic += [
            size for value in values if isinstance(value, Tensor) for size in value.shape if not isinstance(size, int)
        ]
        if symbolic:
            raise ValueError(
                f"export: {node.name} has the size {symbolic[0]}; only sizes that are numbers are supported"
            )
    for spec in program.graph_signature.output_specs:
        if spec.kind not in RESULTS:
            raise ValueError(f"export: results of kind {spec.kind.name} are not supported")


def _inputs(program: ExportedProgram) -> list[dict[str, object]]:
    """The graph's arguments in order: a weight's name, or a user input's, with its value where it is no tensor."""
    found: list[dict[str, object]] = []
    for spec, node in zip(program.graph_signature.input_specs, program.graph.find_nodes(op="placeholder"), strict=True):
        value = node.meta.get("val")
        if spec.kind == InputKind.USER_INPUT:
            kind = {"device": value.device.type} if isinstance(value, Tensor) else {"value": value}
            found.append({"user": node.name, **kind})
        else:
            found.append({"weight": spec.target})
    return found


def _outputs(program: ExportedProgram) -> list[dict[str, object]]:
    """The graph's results in order: of the user, or the weight or user input that gets the result."""
    inputs = {spec.arg.name: number for number, spec in enumerate(program.graph_signature.input_specs)}
    targets = {spec.target: number for number, spec in enumerate(program.graph_signature.input_specs) if spec.target}
    nodes = output_nodes(program.graph)
    found: list[dict[str, object]] = []
    for spec, node in zip(program.graph_signature.output_specs, nodes, strict=True):
        if spec.kind == OutputKind.BUFFER_MUTATION:
            found.append({"writes": targets[str(spec.target)]})
        elif spec.kind == OutputKind.USER_INPUT_MUTATION:
            found.append({"writes": inputs[str(spec.target)]})
        else:
            found.append({} if isinstance(node, fx.Node) else {"value": node})
    return found


def _only_tensors(module: fx.GraphModule) -> fx.Graph:
    """The graph without arguments, results and assertions that are no tensors."""
    graph = module.graph
    (output,) = graph.find_nodes(op="output")
    output.args = (tuple(node for node in output_nodes(graph) if isinstance(node, fx.Node)),)
    for node in reversed(list(graph.nodes)):
        is_assertion = node.op == "call_function" and node.meta.get("val") is None
        is_number = node.op == "placeholder" and not isinstance(node.meta.get("val"), Tensor)
        if not node.users and (is_assertion or is_number):
            graph.erase_node(node)
    return graph


def _weights(program: ExportedProgram) -> tuple[dict[str, dict[str, object]], bytes]:
    """Where each parameter, buffer and constant is, and all of them in a row; equal ones (tied) once."""
    places: dict[str, dict[str, object]] = {}
    content = bytearray()
    seen: dict[tuple, int] = {}
    values = {**program.constants, **program.state_dict}
    for spec in program.graph_signature.input_specs:
        if spec.kind == InputKind.USER_INPUT or spec.target is None:
            continue
        target = spec.target
        value = values[target]
        assert isinstance(value, Tensor), spec
        key = (value.data_ptr(), value.dtype, tuple(value.shape), value.stride())
        if key not in seen:
            content.extend(b"\0" * (-len(content) % ALIGNMENT))
            seen[key] = len(content)
            content.extend(_bytes(value))
        places[target] = {"start": seen[key], "dtype": dtype_name(value.dtype), "shape": list(value.shape)}
    return places, bytes(content)


def _bytes(value: Tensor) -> bytes:
    flat = value.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


def _dtypes(imported: Imported) -> dict[str, object]:
    """What MLIR's types don't say."""
    pairs = {"argument_dtypes": imported.argument_dtypes, "result_dtypes": imported.result_dtypes}
    return {name: [dtype_name(dtype) for dtype in dtypes] for name, dtypes in pairs.items()}


def _kernels(artifact: Artifact) -> dict[str, object]:
    """The code's own name of each kernel, the section it is in, and the symbols of objects."""
    if isinstance(artifact.code, PtxCode):
        entries = artifact.code.kernels
        return {"kernels": {name: {"section": f"kernel {name}", "name": entry.name} for name, entry in entries.items()}}
    conversions = cpu.compile_conversions()
    return {
        "kernels": {
            name: {"section": f"kernel {name}", "name": kernel.name, **header_of(kernel.code)}
            for name, kernel in artifact.code.kernels.items()
        },
        "conversions": header_of(conversions),
    }


def _code(artifact: Artifact) -> dict[str, bytes]:
    if isinstance(artifact.code, PtxCode):
        codes = {name: entry.image.code for name, entry in artifact.code.kernels.items()}
        return {f"kernel {name}": code.encode() if isinstance(code, str) else code for name, code in codes.items()}
    objects = {f"kernel {name}": kernel.code.code for name, kernel in artifact.code.kernels.items()}
    return {"conversions": cpu.compile_conversions().code, **objects}
