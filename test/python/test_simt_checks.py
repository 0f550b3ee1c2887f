"""What the checker reports, a rule at a time, on kernels written by hand: one that breaks it, one that just doesn't."""

from __future__ import annotations

import numpy as np
import pytest
from mlir_fusion.runtime.simt.errors import KernelError
from test_simt_ops import kernel

SHARED = "memref<64xi32, #gpu.address_space<workgroup>>"
HEADER = "gpu.func @k(%x: memref<256xi32>, %y: memref<256xi32>)"


def launch(
    body: str, blocks: int = 1, threads: int = 64, shared: str = "", shared_bytes: int = 0, attributes: str = ""
) -> np.ndarray:
    """Runs a kernel of %x, which holds 0, 1, ..., and %y; y, or the first finding."""
    code = f"""{HEADER} {shared} kernel {attributes} {{
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %n = gpu.block_dim x
      %o = arith.muli %b, %n : index
      %i = arith.addi %o, %t : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c32 = arith.constant 32 : index
      %c63 = arith.constant 63 : index
      %v = memref.load %x[%i] : memref<256xi32>
      {body}
      gpu.return
    }}"""
    x, y = np.arange(256, dtype=np.int32), np.full(256, -1, np.int32)
    arguments = [x.ctypes.data, y.ctypes.data]
    kernel(code).run((blocks, 1, 1), (threads, 1, 1), arguments, shared_bytes, lambda *_: None)
    return y


def finding(body: str, **options: int | str) -> str:
    """What is reported, without where."""
    with pytest.raises(KernelError) as raised:
        launch(body, **options)  # pyright: ignore[reportArgumentType]
    return f"{raised.value.kind}: {raised.value.message}"


# Every thread of 4 blocks of 64 writes its element of y, after the `work` on shared memory %s
def reversed_in_shared_memory(barrier: str) -> str:
    return f"""
      memref.store %v, %s[%t] : {SHARED}
      {barrier}
      %r = arith.subi %c63, %t : index
      %w = memref.load %s[%r] : {SHARED}
      memref.store %w, %y[%i] : memref<256xi32>
    """


IN_SHARED = f"workgroup(%s : {SHARED})"


def test_shared_memory_needs_a_barrier() -> None:
    y = launch(reversed_in_shared_memory("gpu.barrier"), blocks=4, shared=IN_SHARED)
    assert y.tolist() == [64 * (i // 64) + 63 - i % 64 for i in range(256)]
    message = finding(reversed_in_shared_memory(""), blocks=4, shared=IN_SHARED)
    assert message.startswith("race: race: reads what another thread writes, with no barrier in between (thread 63 of ")
    assert "by thread 0 of block 0 and 255 more; in kernel @k: %4 = memref.load" in message


def test_a_read_before_a_write_needs_one_too() -> None:
    code = f"""
      memref.store %v, %s[%t] : {SHARED}
      gpu.barrier
      %r = arith.subi %c63, %t : index
      %w = memref.load %s[%r] : {SHARED}
      {{}}
      memref.store %w, %s[%t] : {SHARED}
      gpu.barrier
      %z = memref.load %s[%t] : {SHARED}
      memref.store %z, %y[%i] : memref<256xi32>
    """
    assert launch(code.format("gpu.barrier"), 4, shared=IN_SHARED)[:3].tolist() == [63, 62, 61]
    assert "writes what another thread reads" in finding(code.format(""), blocks=4, shared=IN_SHARED)


def test_threads_may_write_the_same_and_nothing_else() -> None:
    same = "memref.store %v, %y[%i] : memref<256xi32>\nmemref.store %q, %y[%c0] : memref<256xi32>"
    assert launch("%q = arith.constant 0 : i32\n" + same, 4)[0] == 0
    assert "writes what another thread writes" in finding("%q = arith.constant 1 : i32\n" + same, blocks=4)
    assert "writes what another thread writes" in finding("memref.store %v, %y[%c0] : memref<256xi32>")


@pytest.mark.parametrize("between", ["", "gpu.barrier"])
def test_no_barrier_orders_blocks(between: str) -> None:
    """Element i + 1 of the next thread: of this block after a barrier, of another one never."""
    code = f"""
      memref.store %v, %y[%i] : memref<256xi32>
      {between}
      %last = arith.cmpi ult, %t, %c63 : index
      scf.if %last {{
        %j = arith.addi %i, %c1 : index
        %w = memref.load %y[%j] : memref<256xi32>
      }}
    """
    if between:
        launch(code, 4)
        code = code.replace("%t, %c63", "%i, %c191").replace("%last =", "%c191 = arith.constant 191 : index\n%last =")
    assert finding(code, blocks=4).startswith("race: ")


def test_all_threads_or_none_reach_a_barrier() -> None:
    store = "memref.store %v, %y[%i] : memref<256xi32>"
    code = f"%go = arith.cmpi {{}} : index\nscf.if %go {{{{ gpu.barrier }}}}\n{store}"
    launch(code.format("eq, %b, %c1"), 4)
    message = finding(code.format("ult, %t, %c32"), blocks=4)
    assert message.startswith("barrier: barrier: 32 of 64 threads don't reach it")
    loop = f"scf.for %k = %c0 to {{}} step %c1 {{{{ gpu.barrier }}}}\n{store}"
    launch(loop.format("%b"), 4)
    assert finding(loop.format("%t"), blocks=4).startswith("barrier: ")


def test_shuffles_take_all_lanes() -> None:
    code = """
      %d = arith.constant 1 : i32
      %w = arith.constant {width} : i32
      %go = arith.cmpi {condition} : index
      scf.if %go {{
        %s, %ok = gpu.shuffle xor %v, %d, %w : i32
        memref.store %s, %y[%i] : memref<256xi32>
      }}
      scf.if %go {{ }} else {{ memref.store %v, %y[%i] : memref<256xi32> }}
    """
    assert launch(code.format(width=32, condition="ult, %t, %c32"), 4)[:3].tolist() == [1, 0, 3]
    message = finding(code.format(width=32, condition="ult, %t, %c63"), blocks=4)
    assert message.startswith("shuffle: shuffle: lane 31 of warp 1 is not active")
    message = finding(code.format(width=16, condition="ult, %t, %c32"), blocks=4)
    assert message.startswith("shuffle: shuffle: a lane takes part beyond the 16 that it is for")
    assert finding(code.format(width=32, condition="ult, %t, %c63"), threads=48, blocks=4).startswith("shuffle: ")


def test_bounds() -> None:
    store = "memref.store %v, %y[%j] : memref<256xi32>"
    message = finding(f"%j = arith.addi %i, %c1 : index\n{store}", blocks=4)
    assert message.startswith(
        "bounds: out of bounds: index 256 in dimension 0 of 256 elements, by thread 63 of block 3;"
    )
    message = finding(f"%j = arith.subi %i, %c2 : index\n{store}", blocks=4)
    assert "index -2 in dimension 0 of 256 elements, by thread 0 of block 0 and 1 more" in message
    two = "%z = memref.reinterpret_cast %y to offset: [0], sizes: [8, 32], strides: [32, 1] "
    two += ": memref<256xi32> to memref<8x32xi32>\nmemref.store %v, %z[%c0, %i] : memref<8x32xi32>"
    assert "index 32 in dimension 1 of 32 elements" in finding(two, blocks=4)


def test_vectors_are_aligned_and_whole() -> None:
    code = """
      %four = arith.constant 4 : index
      %e = arith.muli %i, %four : index
      %j = arith.{change}, %c{by} : index
      %w = vector.load %x[%j] {{alignment = 16 : i64}} : memref<256xi32>, vector<4xi32>
      vector.store %w, %y[%e] : memref<256xi32>, vector<4xi32>
    """
    assert launch(code.format(change="subi %e", by=0)).tolist() == list(range(256))
    message = finding(code.format(change="xori %e", by=1))
    assert message.startswith("bounds: out of bounds: index 253 of a vector of 4 in dimension 0 of 256 elements")
    message = finding(code.format(change="minui %e", by=63))
    assert message.startswith("alignment: misaligned: 16 bytes are promised, by thread 16 of block 0 and 47 more")


def test_shared_memory_is_not_zero() -> None:
    code = f"%w = memref.load %s[%t] : {SHARED}\nmemref.store %w, %y[%i] : memref<256xi32>"
    assert finding(code, shared=IN_SHARED).startswith("uninitialised: reads what was never written, by thread 0 ")


def test_a_block_has_its_own_shared_memory_and_no_more() -> None:
    code = f"memref.store %v, %s[%i] : {SHARED}\nmemref.store %v, %y[%i] : memref<256xi32>"
    assert finding(code, blocks=4, shared=IN_SHARED).startswith("bounds: ")


def test_dynamic_shared_memory() -> None:
    code = """
      %d = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
      %q = arith.constant {offset} : index
      %s = memref.view %d[%q][] : memref<?xi8, #gpu.address_space<workgroup>> to SHARED
    """.replace("SHARED", SHARED)
    work = reversed_in_shared_memory("gpu.barrier")
    y = launch(code.format(offset=16) + work, blocks=4, shared_bytes=272)
    assert y.tolist() == [64 * (i // 64) + 63 - i % 64 for i in range(256)]
    message = finding(code.format(offset=32) + work, blocks=4, shared_bytes=272)
    assert message.startswith("bounds: out of bounds: a view of 256 bytes, of memory of 272 bytes")


def test_every_element_is_written() -> None:
    message = finding("memref.store %v, %y[%i] : memref<256xi32>", blocks=3)
    assert message.startswith("incomplete: argument 1: 64 of 256 elements are never written, the first at [192]")


def test_a_failed_assertion_is_an_index_error() -> None:
    code = """
      %ok = arith.cmpi ult, %i, %c63 : index
      cf.assert %ok, "index out of range"
      memref.store %v, %y[%i] : memref<256xi32>
    """
    with pytest.raises(IndexError, match="index out of range, by thread 63 of block 0 and 192 more"):
        launch(code, 4)


def test_many_blocks_run_in_batches() -> None:
    """What one batch wrote is still known when the next one runs."""
    x, y = np.arange(1 << 18, dtype=np.int32), np.zeros(1 << 18, np.int32)
    code = """gpu.func @k(%x: memref<262144xi32>, %y: memref<262144xi32>) kernel {
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %n = gpu.block_dim x
      %o = arith.muli %b, %n : index
      %i = arith.addi %o, %t : index
      %v = memref.load %x[%i] : memref<262144xi32>
      memref.store %v, %y[%i] : memref<262144xi32>
      EXTRA
      gpu.return
    }"""
    grid = (1024, 1, 1), (256, 1, 1)
    kernel(code.replace("EXTRA", "")).run(*grid, [x.ctypes.data, y.ctypes.data], 0, lambda *_: None)
    assert (x == y).all()
    first = "%z = arith.constant 0 : index\n%w = memref.load %y[%z] : memref<262144xi32>"
    with pytest.raises(KernelError, match="race"):
        kernel(code.replace("EXTRA", first)).run(*grid, [x.ctypes.data, y.ctypes.data], 0, lambda *_: None)


def test_memory_that_overlaps_is_one() -> None:
    """An argument that lies in another one's memory: threads read there what others write."""
    memory = np.arange(257, dtype=np.int32)
    code = f"""{HEADER} kernel {{
      %i = gpu.thread_id x
      %v = memref.load %x[%i] : memref<256xi32>
      memref.store %v, %y[%i] : memref<256xi32>
      gpu.return
    }}"""
    grid = (1, 1, 1), (256, 1, 1)
    kernel(code).run(*grid, [memory.ctypes.data, memory.ctypes.data], 0, lambda *_: None)
    with pytest.raises(KernelError, match="writes what another thread reads"):
        kernel(code).run(*grid, [memory.ctypes.data, memory.ctypes.data + 4], 0, lambda *_: None)


def to_the_next_block(start: str = "ARRIVE\nWAIT", end: str = "ARRIVE\nWAIT", rank: str = "%next") -> str:
    """Each thread writes its number to the next block of its cluster of 4, and then reads what it was sent."""
    code = f"""
      {start}
      %rank = gpu.cluster_block_id x
      %c4 = arith.constant 4 : index
      %more = arith.addi %rank, %c1 : index
      %next = arith.remui %more, %c4 : index
      %base = memref.extract_aligned_pointer_as_index %s : {SHARED} -> index
      %bytes = arith.muli %t, %c4 : index
      %place = arith.addi %base, %bytes : index
      %number = arith.index_castui %place : index to i64
      %here = llvm.inttoptr %number : i64 to !llvm.ptr<3>
      %to = arith.index_castui {rank} : index to i32
      %there = nvvm.mapa %here, %to : !llvm.ptr<3> -> !llvm.ptr<7>
      llvm.store %v, %there : i32, !llvm.ptr<7>
      {end}
      %w = memref.load %s[%t] : {SHARED}
      memref.store %w, %y[%i] : memref<256xi32>
    """
    return code.replace("ARRIVE", "nvvm.cluster.arrive {aligned}").replace("WAIT", "nvvm.cluster.wait {aligned}")


IN_CLUSTERS = {"blocks": 4, "shared": IN_SHARED, "attributes": "attributes {known_cluster_size = array<i32: 4, 1, 1>}"}


def test_blocks_of_a_cluster_write_to_each_other() -> None:
    y = launch(to_the_next_block(), **IN_CLUSTERS)
    assert y.tolist() == [(i - 64) % 256 for i in range(256)]
    halves = to_the_next_block(end="ARRIVE\n%z = arith.addi %t, %t : index\nWAIT")
    assert launch(halves, **IN_CLUSTERS).tolist() == y.tolist()


def test_a_cluster_waits_before_and_after() -> None:
    assert "may not have started" in finding(to_the_next_block(start=""), **IN_CLUSTERS)
    assert "reads what another thread writes" in finding(to_the_next_block(end="ARRIVE"), **IN_CLUSTERS)
    assert "reads what another thread writes" in finding(to_the_next_block(end="gpu.barrier"), **IN_CLUSTERS)
    last = to_the_next_block().replace(f"%w = memref.load %s[%t] : {SHARED}", "%w = arith.constant 1 : i32")
    assert launch(last, **IN_CLUSTERS)[0] == 1
    unfinished = last.rpartition("nvvm.cluster.wait {aligned}")
    assert "may have ended" in finding(unfinished[0] + unfinished[2], **IN_CLUSTERS)


def test_a_cluster_has_so_many_blocks() -> None:
    assert finding(to_the_next_block(rank="%more"), **IN_CLUSTERS).startswith("bounds: out of bounds: block 4 of a ")
    assert finding(to_the_next_block(), **{**IN_CLUSTERS, "blocks": 3}).startswith("launch: 3 blocks are no whole cl")


def test_what_a_block_ordered_stays_ordered_between_halves() -> None:
    """A barrier of the block between a cluster's arrival and its wait."""
    code = f"""
      nvvm.cluster.arrive {{aligned}}
      memref.store %v, %s[%t] : {SHARED}
      gpu.barrier
      %r = arith.subi %c63, %t : index
      %w = memref.load %s[%r] : {SHARED}
      nvvm.cluster.wait {{aligned}}
      memref.store %w, %y[%i] : memref<256xi32>
    """
    assert launch(code, **IN_CLUSTERS)[:2].tolist() == [63, 62]
    assert finding(code.replace("gpu.barrier", ""), **IN_CLUSTERS).startswith("race: ")


def copied(wait: str, barrier: str = "", place: str = "%t", again: str = "") -> str:
    """Each thread asks for a copy of its element of x into shared memory, ends a group, waits, and reads a place."""
    return f"""
      %copy = nvgpu.device_async_copy %x[%i], %s[%t], 1 : memref<256xi32> to {SHARED}
      %group = nvgpu.device_async_create_group %copy
      {again}
      {wait}
      {barrier}
      %w = memref.load %s[{place}] : {SHARED}
      memref.store %w, %y[%i] : memref<256xi32>
    """


WAIT = "nvgpu.device_async_wait %group"
REVERSED = "%r = arith.subi %c63, %t : index"


def test_a_copy_is_there_once_its_thread_has_waited() -> None:
    in_shared = {"blocks": 4, "shared": IN_SHARED}
    assert launch(copied(WAIT), **in_shared).tolist() == list(range(256))
    assert finding(copied(""), **in_shared).startswith("uninitialised: ")
    pending = f"{WAIT} {{numGroups = 1 : i32}}"
    assert finding(copied(pending), **in_shared).startswith("uninitialised: ")
    later = "%other = nvgpu.device_async_create_group"
    assert launch(copied(pending, again=later), **in_shared)[255] == 255


def test_a_copy_is_there_for_others_after_a_barrier() -> None:
    in_shared = {"blocks": 4, "shared": IN_SHARED}
    assert launch(copied(WAIT, f"gpu.barrier\n{REVERSED}", "%r"), **in_shared)[0] == 63
    assert finding(copied(WAIT, REVERSED, "%r"), **in_shared).startswith("race: ")
    # A barrier is not enough where the thread that asked does not wait
    assert finding(copied("", f"gpu.barrier\n{REVERSED}", "%r"), **in_shared).startswith("uninitialised: ")


def test_each_thread_waits_for_its_own_copies() -> None:
    """Where half the threads end one group more, the others' first one is still under way."""
    more = """
      %few = arith.cmpi ult, %t, %c32 : index
      scf.if %few { %other = nvgpu.device_async_create_group }
    """
    code = copied(f"{WAIT} {{numGroups = 1 : i32}}", again=more)
    found = finding(code, shared=IN_SHARED)
    assert found.startswith("uninitialised: ") and "thread 32 of block 0 and 31 more" in found


def test_what_is_copied_is_looked_at_as_any_access() -> None:
    beyond = copied(WAIT).replace("%x[%i]", "%x[%far]")
    far = "%c256 = arith.constant 256 : index\n%far = arith.addi %i, %c256 : index\n"
    assert finding(far + beyond, shared=IN_SHARED).startswith("bounds: ")
    wide = copied(WAIT).replace("%s[%t], 1 :", "%s[%t], 4 :")
    assert finding(wide, threads=32, shared=IN_SHARED).startswith("alignment: ")
