"""The peak of a memory plan, on plans written by hand."""

import time

import numpy as np
import pytest
from mlir_fusion.dialects.mlir import ir
from mlir_fusion.driver.runner import make_context
from mlir_fusion.passes.covered import Covered
from mlir_fusion.passes.memory_peak import peak_bytes


def peak(body: str, result: str = "") -> int:
    """Of a function of a memref of 64 bytes with this body; `memref` is short for that type."""
    arrow = f"-> {result}" if result else ""
    with make_context():
        text = f"func.func @f(%x: memref<16xf32>) {arrow} {{\n%c0 = arith.constant 0 : index\n{body}\n}}"
        module = ir.Module.parse(text)
    return peak_bytes(module.body.operations[0].operation)


def kernel(*operands: str, types: tuple[str, ...] | None = None) -> str:
    """Something that touches these buffers."""
    types = types or ("memref<16xf32>",) * len(operands)
    return f'"fusion.kernel"({", ".join(operands)}) ({{}}) : ({", ".join(types)}) -> ()'


def test_arguments_cost_nothing():
    assert peak(kernel("%x", "%x") + "\nreturn") == 0


def test_a_result_lives_to_the_end():
    body = "%r = memref.alloc() : memref<16xf32>\n" + kernel("%x", "%r") + "\nreturn %r : memref<16xf32>"
    assert peak(body, "memref<16xf32>") == 64


def test_buffers_of_a_pool_count_while_they_are_in_use():
    body = "\n".join(
        (
            "%c64 = arith.constant 64 : index",
            "%pool = memref.alloc() : memref<256xi8>",
            "%a = memref.view %pool[%c0][] : memref<256xi8> to memref<16xf32>",
            "%b = memref.view %pool[%c64][] : memref<256xi8> to memref<16xf32>",
            "%c = memref.view %pool[%c0][] : memref<256xi8> to memref<16xf32>",
            kernel("%x", "%a"),
            kernel("%a", "%b"),
            kernel("%b", "%c"),
            "memref.dealloc %pool : memref<256xi8>",
            "return",
        )
    )
    assert peak(body) == 128


def test_what_overwrites_its_input_counts_once():
    body = "\n".join(
        (
            "%pool = memref.alloc() : memref<256xi8>",
            "%a = memref.view %pool[%c0][] : memref<256xi8> to memref<16xf32>",
            "%b = memref.view %pool[%c0][] : memref<256xi8> to memref<8xf32>",
            kernel("%x", "%a"),
            kernel("%a", "%b", types=("memref<16xf32>", "memref<8xf32>")),
            "return",
        )
    )
    assert peak(body) == 64


def test_a_library_allocates_its_results_but_not_what_it_wrote():
    extern = '"fusion.extern"({0}) {{op = "aten.cos.default", args = [#fusion.operand<0>]{1}}} : (memref<16xf32>)'
    body = "\n".join(
        (
            f"%a = {extern.format('%x', '')} -> memref<16xf32>",
            f"%b = {extern.format('%a', ', tied = [[0, 0]]')} -> memref<16xf32>",
            "%v = memref.reinterpret_cast %b to offset: [0], sizes: [4, 4], strides: [4, 1]"
            " : memref<16xf32> to memref<4x4xf32>",
            "return %v : memref<4x4xf32>",
        )
    )
    assert peak(body, "memref<4x4xf32>") == 64


@pytest.mark.parametrize("count", [0, 1, 2, 3, 20])
def test_covered_bytes_are_those_of_the_union(count: int):
    rng = np.random.default_rng(count)
    for _ in range(50):
        starts, sizes = rng.integers(0, 30, count), rng.choice([0, 1, 2, 7, 30], count)
        ranges = [(int(start), int(start + size)) for start, size in zip(starts, sizes, strict=True)]
        covered, live = Covered(ranges), []
        for number in rng.permutation([*range(count), *range(count)]):
            if ranges[number] in live:
                live.remove(ranges[number])
                covered.remove(ranges[number])
            else:
                live.append(ranges[number])
                covered.add(ranges[number])
            assert covered.bytes == len({byte for first, after in live for byte in range(first, after)})


def test_as_many_live_buffers_as_operations():
    """Each a kernel's result that is returned: looking at all of them at each step takes a minute."""
    count = 3000
    lines = [f"%r{number} = memref.alloc() : memref<16xf32>\n{kernel('%x', f'%r{number}')}" for number in range(count)]
    types = ", ".join(["memref<16xf32>"] * count)
    names = ", ".join(f"%r{number}" for number in range(count))
    body = "\n".join([*lines, f"return {names} : {types}"])
    start = time.process_time()
    assert peak(body, f"({types})") == 64 * count
    assert time.process_time() - start < 5
