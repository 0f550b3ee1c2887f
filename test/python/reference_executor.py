"""Runs linalg on tensors through MLIR's own lowering to loops, without any of this project's passes.

    execute(module, [x, y]) -> [results of @main]

Arrays are numpy's. numpy has no bfloat16: such tensors travel as their bits, in uint16 (`to_bfloat16`,
`from_bfloat16`). Shapes are static. A `fusion.view` is read through its strides; library calls are refused.
The numbers are the program's, element by element in source order: what a transformation must reproduce.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
from mlir_fusion.dialects import fusion
from mlir_fusion.dialects.mlir import arith, ir, linalg, passmanager, tensor
from torch_mlir.execution_engine import ExecutionEngine
from torch_mlir.runtime import get_ranked_memref_descriptor

TO_LLVM = (
    "builtin.module(canonicalize,convert-elementwise-to-linalg,empty-tensor-to-alloc-tensor,"
    "one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map allow-return-allocs-from-loops=1},"
    "buffer-results-to-out-params{modify-public-functions=1},"
    "func.func(convert-linalg-to-loops,llvm-request-c-wrappers),"
    "expand-strided-metadata,lower-affine,math-extend-to-supported-types{target-type=f32},"
    "arith-expand{include-bf16=1},convert-math-to-llvm,convert-math-to-libm,convert-scf-to-cf,"
    "expand-strided-metadata,lower-affine,convert-arith-to-llvm,finalize-memref-to-llvm,"
    "convert-func-to-llvm,convert-cf-to-llvm,canonicalize,reconcile-unrealized-casts)"
)
DTYPES = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "bf16": np.uint16,
    "i64": np.int64,
    "i32": np.int32,
    "i8": np.int8,
    "i1": np.bool_,
}


def execute_text(text: str, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """`execute` for a module given as text."""
    with ir.Context() as context, ir.Location.unknown():
        fusion.load(context)
        return execute(ir.Module.parse(text), arrays)


def execute(module: ir.Module, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of @main, called with `arrays`; `module` stays as it is."""
    with module.context, ir.Location.unknown():
        copy = ir.Module.parse(str(module))
        function = next(view for view in copy.body.operations if view.operation.name == "func.func")
        types = [ir.RankedTensorType(type_) for type_ in ir.FunctionType(function.type).results]
        outputs = [np.zeros(list(type_.shape), DTYPES[str(type_.element_type)]) for type_ in types]
        _copy_results(function.operation)
        _replace_views(copy)
        passmanager.PassManager.parse(TO_LLVM).run(copy.operation)
        engine = ExecutionEngine(copy, opt_level=0)
        engine.raw_register_runtime("memrefCopy", ctypes.cast(_COPY, ctypes.c_void_p))
    owned = [np.ascontiguousarray(array) for array in (*arrays, *outputs)]
    owned[len(arrays) :] = outputs
    _invoke(engine, owned)
    return outputs


def _copy_memory(size: int, source: int, target: int) -> None:
    """What MLIR's runtime library does for memref.copy where a side is not contiguous; memrefs are given by address."""
    from_array, to_array = _described(source, size), _described(target, size)
    to_array[...] = from_array


def _described(address: int, size: int) -> np.ndarray:
    """The memory that an unranked memref describes, elements of `size` bytes."""
    rank, descriptor = (ctypes.c_int64 * 2).from_address(address)
    _, data, offset, *rest = (ctypes.c_int64 * (3 + 2 * rank)).from_address(descriptor)
    shape, strides = rest[:rank], [stride * size for stride in rest[rank:]]
    reach = 1 + sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) // size
    elements = (ctypes.c_char * (max(reach, 1) * size)).from_address(data + offset * size)
    return np.lib.stride_tricks.as_strided(np.frombuffer(elements, f"V{size}"), shape, strides)


_COPY = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(_copy_memory)


def to_bfloat16(array: np.ndarray) -> np.ndarray:
    """The bits of the nearest bfloat16s, ties to even."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    """The values of bfloat16s, in float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _invoke(engine: ExecutionEngine, arrays: Sequence[np.ndarray]) -> None:
    signed = [array.view(np.int16) if array.dtype == np.uint16 else array for array in arrays]
    pointers = [ctypes.pointer(ctypes.pointer(get_ranked_memref_descriptor(array))) for array in signed]
    engine.invoke("main", *pointers)


def _copy_results(function: ir.Operation) -> None:
    """Each result gets memory of its own: an argument may be returned, or one value twice."""
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    for number, value in enumerate(terminator.operands):
        shaped = ir.RankedTensorType(value.type)
        with ir.InsertionPoint(terminator):
            empty = tensor.EmptyOp(list(shaped.shape), shaped.element_type).result
            terminator.operands[number] = linalg.copy(value, outs=[empty])


def _replace_views(module: ir.Module) -> None:
    """Reads the source of each fusion.view as one long vector, at the places that offset and strides name."""
    views: list[ir.Operation] = []
    module.operation.walk(lambda op: _collect(op, views))
    for op in views:
        with ir.InsertionPoint(op), op.location:
            op.results[0].replace_all_uses_with(_read_view(op))
        op.erase()


def _collect(op: ir.Operation, views: list[ir.Operation]) -> ir.WalkResult:
    assert not fusion.is_op(op, "extern"), f"a library call can't be executed: {op}"
    if fusion.is_op(op, "view"):
        views.append(op.operation)
    return ir.WalkResult.ADVANCE


def _read_view(op: ir.Operation) -> ir.Value:
    source, shaped = op.operands[0], ir.RankedTensorType(op.results[0].type)
    flat = _flat(source)
    strides = fusion.integers(op.attributes["strides"])
    offset = ir.IntegerAttr(op.attributes["offset"]).value

    made = ir.Operation.create("tensor.generate", results=[shaped], regions=1)
    block = ir.Block.create_at_start(made.regions[0], [ir.IndexType.get()] * shaped.rank)
    with ir.InsertionPoint(block):
        place = _index(offset)
        for index, stride in zip(block.arguments, strides, strict=True):
            place = arith.addi(place, arith.muli(index, _index(stride)))
        ir.Operation.create("tensor.yield", operands=[tensor.extract(flat, [place])])
    return made.results[0]


def _flat(source: ir.Value) -> ir.Value:
    shaped = ir.RankedTensorType(source.type)
    count = int(np.prod(list(shaped.shape), dtype=np.int64))
    vector = ir.RankedTensorType.get([count], shaped.element_type)
    sizes = arith.ConstantOp(
        ir.RankedTensorType.get([1], ir.IndexType.get()),
        ir.DenseElementsAttr.get(np.array([count], np.int64), type=ir.IndexType.get()),
    ).result
    return tensor.reshape(vector, source, sizes)


def _index(value: int) -> ir.Value:
    return arith.ConstantOp(ir.IndexType.get(), value).result
