"""Dense constants of the IR as tensors."""

from __future__ import annotations

import functools
import re

import numpy as np
import torch

from ..dialects.mlir import ir
from .dtypes import dtype_of

NARROW = {"bf16", "f8E4M3FN", "f8E5M2"}
"""Element types that numpy lacks, and the bindings therefore don't hand out."""


RESOURCE = re.compile(r'^ *("[^"]*"|[\w.$-]+): "0x([0-9A-Fa-f]*)"', re.MULTILINE)
"""An entry of the section of resources at the end of a module's text."""
RESOURCE_HEADER = 4
"""Bytes in front of a resource's data, which hold its alignment."""


class Constants:
    """The global constants of a module."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        operations = (op.operation for op in module.body.operations)
        self._globals = {
            ir.StringAttr(op.attributes["sym_name"]).value: op for op in operations if op.name == "memref.global"
        }

    def tensor(self, name: str) -> torch.Tensor:
        """A constant as a new tensor on the CPU; ValueError where the module does not have its values."""
        if name not in self._globals:
            raise ValueError(f"the module has no constant @{name}")
        attribute = self._globals[name].attributes["initial_value"]
        if isinstance(attribute, ir.DenseElementsAttr):
            return constant_tensor(attribute)
        key = str(attribute)[len("dense_resource<") :].rpartition("> :")[0]
        if key not in self._resources:
            raise ValueError(f"{self._globals[name].location}: the module does not have the values of {attribute}")
        shaped = ir.ShapedType(attribute.type)
        data = bytearray.fromhex(self._resources[key])[RESOURCE_HEADER:]
        return torch.frombuffer(data, dtype=dtype_of(shaped.element_type)).reshape(list(shaped.shape)).clone()

    @functools.cached_property
    def _resources(self) -> dict[str, str]:
        """The bindings don't hand out a resource's data, but its text is printed with the module."""
        text = self._module.operation.get_asm(assume_verified=True)
        return dict(RESOURCE.findall(text[text.rfind("{-#") :]))


def constant_tensor(attribute: ir.Attribute) -> torch.Tensor:
    """A dense attribute as a new tensor on the CPU."""
    shaped = ir.ShapedType(attribute.type)
    dtype, shape = dtype_of(shaped.element_type), list(shaped.shape)
    if str(shaped.element_type) in NARROW:
        return _from_text(str(attribute), dtype, shape)
    return torch.from_numpy(np.array(attribute)).to(dtype).reshape(shape).clone()


def _from_text(text: str, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    """MLIR prints many elements as one string of bytes, few as numbers; one stands for all if it is alone."""
    body = text[text.index("<") + 1 : text.rindex("> :")]
    if body.startswith('"0x'):
        raw = torch.frombuffer(bytearray.fromhex(body[3:-1]), dtype=dtype)
    else:
        raw = torch.stack([_element(token, dtype) for token in re.findall(r"[-+.\w]+", body)] or [torch.empty(0)])
    return (raw.expand(shape) if raw.numel() == 1 else raw.reshape(shape)).clone()


def _element(token: str, dtype: torch.dtype) -> torch.Tensor:
    if not token.startswith("0x"):
        return torch.tensor(float(token), dtype=dtype)
    return torch.frombuffer(bytearray(bytes.fromhex(token[2:]))[::-1], dtype=dtype)[0]
