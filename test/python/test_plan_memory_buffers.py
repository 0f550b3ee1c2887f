"""Packing of buffers: what shares memory, and that nothing in use ever overlaps."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st
from mlir_fusion.passes.buffers import ALIGNMENT, Buffer, align, live_bytes, place, plan_pools

STEPS = 40
KILOBYTE = 1024


@st.composite
def buffers(draw: st.DrawFn) -> Buffer:
    start = draw(st.integers(0, STEPS - 1))
    end = draw(st.integers(start, STEPS - 1))
    return Buffer(start, end, draw(st.integers(0, 5000)))


def overlap(first: Buffer, at: int, second: Buffer, other_at: int) -> bool:
    return first.meets(second) and at < other_at + second.size and other_at < at + first.size


@given(st.lists(buffers(), max_size=40))
@settings(max_examples=300, deadline=None)
def test_live_buffers_never_overlap(items: list[Buffer]) -> None:
    offsets, size = place(items)
    assert all(offset % ALIGNMENT == 0 and offset >= 0 for offset in offsets)
    assert all(offset + item.size <= size for offset, item in zip(offsets, items, strict=True))
    placed = list(zip(items, offsets, strict=True))
    for number, (item, offset) in enumerate(placed):
        assert not any(overlap(item, offset, *other) for other in placed[:number])


@given(st.lists(buffers(), max_size=40))
@settings(max_examples=200, deadline=None)
def test_packing_lies_between_the_live_bytes_and_the_sum(items: list[Buffer]) -> None:
    _, size = place(items)
    assert live_bytes(items, STEPS).max() <= size <= sum(align(item.size) for item in items)


@given(st.lists(buffers(), max_size=40), st.lists(buffers(), max_size=8))
@settings(max_examples=300, deadline=None)
def test_pools_hold_everything_and_never_raise_the_total(items: list[Buffer], others: list[Buffer]) -> None:
    pools = plan_pools(items, STEPS, others)
    assert sorted(number for pool in pools for number in pool.offsets) == list(range(len(items)))
    for pool in pools:
        placed = [(items[number], offset) for number, offset in pool.offsets.items()]
        for number, (item, offset) in enumerate(placed):
            assert pool.start <= item.start and item.end <= pool.end and offset + item.size <= pool.size
            assert not any(overlap(item, offset, *other) for other in placed[:number])
    allocations = [Buffer(pool.start, pool.end, pool.size) for pool in pools]
    separate = live_bytes([*items, *others], STEPS).max()
    assert live_bytes([*allocations, *others], STEPS).max() <= separate


def test_a_buffer_moves_in_where_another_was() -> None:
    offsets, size = place([Buffer(0, 1, KILOBYTE), Buffer(1, 3, KILOBYTE), Buffer(2, 3, KILOBYTE)])
    assert (offsets, size) == ([0, KILOBYTE, 0], 2 * KILOBYTE)


def test_the_smallest_hole_that_fits_is_taken() -> None:
    items = [
        Buffer(0, 1, 4 * KILOBYTE),
        Buffer(0, 9, 3 * KILOBYTE),
        Buffer(0, 1, 2 * KILOBYTE),
        Buffer(0, 9, KILOBYTE),
        Buffer(2, 9, 2 * KILOBYTE),
    ]
    offsets, size = place(items)
    assert offsets[4] == offsets[2]
    assert size == 10 * KILOBYTE


def test_a_pool_ends_where_nothing_is_live() -> None:
    pools = plan_pools([Buffer(0, 1, KILOBYTE), Buffer(3, 4, KILOBYTE)], steps=6)
    assert [(pool.start, pool.end) for pool in pools] == [(0, 1), (3, 4)]


def test_one_pool_serves_a_stretch_when_that_costs_nothing() -> None:
    chain = [Buffer(step, step + 1, KILOBYTE) for step in range(8)]
    (pool,) = plan_pools(chain, steps=9)
    assert pool.size == 2 * KILOBYTE


def test_a_pool_is_split_where_a_library_result_would_come_on_top() -> None:
    """The large buffer is gone when the library allocates; only the small one may stay."""
    large, small = Buffer(0, 1, 64 * KILOBYTE), Buffer(0, 5, KILOBYTE)
    library = Buffer(3, 4, 64 * KILOBYTE)
    pools = plan_pools([large, small], steps=6, others=[library])
    assert [(pool.start, pool.end, pool.size) for pool in pools] == [
        (0, 1, 64 * KILOBYTE),
        (0, 5, KILOBYTE),
    ]


def test_planning_grows_no_faster_than_n_log_n() -> None:
    def seconds(count: int) -> float:
        items = [Buffer(step, min(step + step % 7, count - 1), 512 + step % 4096) for step in range(count)]
        start = time.process_time()
        plan_pools(items, count)
        return time.process_time() - start

    def least(count: int) -> float:
        return min(seconds(count) for _ in range(3))

    # Of this process's time, for other processes take their share of the clock's; quadratic would be 100 times
    assert least(20_000) < 40 * max(least(2_000), 0.002)
