"""Writes the code of a host function: calls of helpers over a frame of words, and what stands around it."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects.mlir import arith, func, ir, llvm

THUNK = """
func.func private @{name}(%kernel: !llvm.ptr, %parameters: !llvm.ptr) -> i32 {{
{loads}
  {result}llvm.call %kernel({operands}) : !llvm.ptr, ({types}) -> {returned}
  {default}
  return %status : i32
}}
"""
LOAD = """  %p{n} = llvm.getelementptr %parameters[{n}] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %c{n} = llvm.load %p{n} : !llvm.ptr -> !llvm.ptr
  %v{n} = llvm.load %c{n} : !llvm.ptr -> {type}"""


class HostCode:
    """The function that is made, and the declarations and lists of words that it needs."""

    def __init__(self, module: ir.Block, name: str) -> None:
        """Starts a function `name` of the program and its inputs at the current insertion point, in `module`."""
        self._module = module
        self.i64, self.pointer = ir.IntegerType.get_signless(64), llvm.PointerType.get()
        type_ = ir.FunctionType.get([self.pointer, self.pointer], [self.pointer])
        self.block = func.FuncOp(name, type_).add_entry_block()
        self._declared: set[str] = set()
        self._lists: dict[tuple[int, ...], str] = {}
        self._thunks: dict[tuple[str, ...], str] = {}
        with ir.InsertionPoint(self.block):
            self._size = arith.ConstantOp(self.i64, 0)
            self.frame = llvm.AllocaOp(self.pointer, self._size.result, self.i64).result

    @property
    def arguments(self) -> list[ir.Value]:
        """The program and its inputs."""
        return list(self.block.arguments)

    def set_size(self, words: int) -> None:
        """Says how long the frame is; known at the end."""
        self._size.operation.attributes["value"] = ir.IntegerAttr.get(self.i64, words)

    def number(self, value: int) -> ir.Value:
        """A constant of 64 bits."""
        return arith.ConstantOp(self.i64, value).result

    def wide(self, value: ir.Value) -> ir.Value:
        """An index or a smaller integer with 64 bits."""
        if isinstance(value.type, ir.IndexType):
            return arith.IndexCastOp(self.i64, value).result
        return value if value.type == self.i64 else arith.ExtSIOp(self.i64, value).result

    def call(self, name: str, *operands: int | ir.Value) -> None:
        """Calls a helper with the frame and these."""
        self._call(name, operands, [])

    def finish(self, n_objects: int, words: Sequence[int]) -> None:
        """Ends the function with the list of these objects."""
        operands = (n_objects, len(words), self.words(words))
        func.ReturnOp(self._call("fusion_finish", operands, [self.pointer]).results)

    def _call(self, name: str, operands: Sequence[int | ir.Value], results: list[ir.Type]) -> ir.Operation:
        values = [self.frame, *(self.number(one) if isinstance(one, int) else one for one in operands)]
        if name not in self._declared:
            self._declared.add(name)
            type_ = ir.FunctionType.get([value.type for value in values], results)
            func.FuncOp(name, type_, visibility="private", ip=ir.InsertionPoint(self._module))
        return func.CallOp(results, name, values).operation

    def load(self, word: int, type_: ir.Type) -> ir.Value:
        """A number in a word of the frame."""
        if isinstance(type_, ir.IndexType):
            return arith.IndexCastOp(type_, self.load(word, self.i64)).result
        return llvm.LoadOp(type_, self._place(word)).result

    def store(self, value: ir.Value, word: int) -> None:
        """Writes a number to a word of the frame."""
        stored = self.wide(value) if isinstance(value.type, ir.IndexType) else value
        llvm.StoreOp(stored, self._place(word))

    def _place(self, word: int) -> ir.Value:
        flags = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
        return llvm.GEPOp(self.pointer, self.frame, [], [word], self.i64, flags).result

    def words(self, words: Sequence[int]) -> ir.Value:
        """The address of a constant list of words' numbers."""
        if not words:
            return llvm.ZeroOp(self.pointer).result
        key = tuple(words)
        if key not in self._lists:
            self._lists[key] = f"words_{len(self._lists)}"
            values = f"dense<{list(words)}> : tensor<{len(words)}xi64>"
            list_type = f"!llvm.array<{len(words)} x i64>"
            self._add(f"llvm.mlir.global private constant @{self._lists[key]}({values}) : {list_type}")
        return llvm.AddressOfOp(self.pointer, self._lists[key]).result

    def thunk(self, parameters: Sequence[ir.Type], results: Sequence[ir.Type]) -> ir.Value:
        """The address of a function that calls a kernel of these types with what an array of pointers points at."""
        types = [_passed(type_) for type_ in parameters]
        key = (*types, "->", *map(str, results))
        if key not in self._thunks:
            self._thunks[key] = f"thunk_{len(self._thunks)}"
            self._add(_thunk(self._thunks[key], types, [str(result) for result in results]))
        return func.ConstantOp(
            ir.FunctionType.get([self.pointer] * 2, [ir.IntegerType.get_signless(32)]),
            ir.FlatSymbolRefAttr.get(self._thunks[key]),
        ).result

    def _add(self, text: str) -> None:
        ir.InsertionPoint(self._module).insert(ir.Operation.parse(text))


def _passed(type_: ir.Type) -> str:
    """How a kernel takes an argument of this type."""
    if isinstance(type_, ir.MemRefType):
        return "!llvm.ptr"
    return "i64" if isinstance(type_, ir.IndexType) else str(type_)


def _thunk(name: str, types: Sequence[str], results: Sequence[str]) -> str:
    return THUNK.format(
        name=name,
        loads="\n".join(LOAD.format(n=number, type=type_) for number, type_ in enumerate(types)),
        result="%status = " if results else "",
        operands=", ".join(f"%v{number}" for number in range(len(types))),
        types=", ".join(types),
        returned=results[0] if results else "()",
        default="" if results else "%status = arith.constant 0 : i32",
    )
