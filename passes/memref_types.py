"""What a tensor becomes in memory: memref types, sizes in bytes, torch's names of dtypes.

tensor<4x8xf32>                                   memref<4x8xf32>
tensor<4x8xf32>, #fusion.layout<[1, 4], 0, 16>    memref<4x8xf32, strided<[1, 4]>>
tensor<4x8xi1>                                    memref<4x8xi8>, "bool"
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects import fusion
from ..dialects.mlir import ir

DTYPE_NAMES = {
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "index": "int64",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E5M2": "float8_e5m2",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}


def is_tensor(value: ir.Value) -> bool:
    """Whether a value is a tensor of known rank."""
    return isinstance(value.type, ir.RankedTensorType)


def element_bytes(element: ir.Type) -> int:
    """The bytes that one element takes in memory."""
    if isinstance(element, ir.ComplexType):
        return 2 * element_bytes(ir.ComplexType(element).element_type)
    if isinstance(element, ir.IndexType):
        return 8
    return fusion.storage_type(element).width // 8


def byte_size(shaped: ir.Type) -> int:
    """The bytes of a dense tensor or memref of static shape."""
    elements = 1
    for extent in shaped.shape:
        elements *= extent
    return elements * element_bytes(shaped.element_type)


def dtype_name(element: ir.Type) -> str:
    """torch's name of the dtype that an element type stands for, where nothing else is said."""
    return DTYPE_NAMES[str(element)]


def contiguous_memref(tensor: ir.Type) -> ir.MemRefType:
    """The memref that holds a tensor row by row.

    Where a size is 0, MLIR takes the strides of a plain memref for unknown, and can't pass it as a pointer.
    """
    shape = list(tensor.shape)
    layout = ir.StridedLayoutAttr.get(0, row_major_strides(shape)) if 0 in shape else None
    return ir.MemRefType.get(shape, fusion.storage_type(tensor.element_type), layout)


def strided_memref(tensor: ir.Type, strides: Sequence[int], offset: int = 0) -> ir.MemRefType:
    """The memref that holds a tensor with these strides; the plain type where they are row-major."""
    shape = list(tensor.shape)
    if offset == 0 and list(strides) == row_major_strides(shape):
        return contiguous_memref(tensor)
    layout = ir.StridedLayoutAttr.get(offset, list(strides))
    return ir.MemRefType.get(shape, fusion.storage_type(tensor.element_type), layout)


def laid_out_memref(tensor: ir.Type, layout: ir.Attribute | None) -> ir.MemRefType:
    """The memref of a tensor with a #fusion.layout.

    The layout's offset is not part of the type: a pointer to the first element is what is handed over.
    """
    found = None if layout is None else fusion.read_layout(layout)
    return contiguous_memref(tensor) if found is None else strided_memref(tensor, found.strides)


def row_major_strides(shape: Sequence[int]) -> list[int]:
    """Strides, in elements, of a tensor that lies row by row."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * max(shape[axis + 1], 1)
    return strides
