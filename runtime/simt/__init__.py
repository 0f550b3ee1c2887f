"""The SIMT checker: runs `gpu.func`s on the CPU, threads in lockstep as numpy lanes, and checks what they do.

    elements.py   how numbers of MLIR's types are held     memory.py   loads and stores, each checked
    grid.py       blocks and threads as lanes              shadow.py   who accessed what, and in which order
    errors.py     what it reports                          compiler.py functions as lists of steps
    ops_*.py      the operations, a table a dialect        kernel.py   a launch, a batch of blocks at a time

To teach it an operation, add a line to the table of its dialect.
"""
