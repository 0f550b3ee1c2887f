"""What the code of host functions calls, in LLVM IR: `fusion_*`, on a frame (passes/fusion_host_to_llvm.py).

    frame      0 program   1 status   2 device   3 stream   4 on this device   5 inputs   6 gradients were on   7 -
    program    see `PROGRAM`; on a device: 0 functions or kernels by launch, 1 constants, 2 stretches
    argument   see `ARGUMENT`; its sizes are those expected, negative where any will do; no strides: row-major

All are words of 64 bits. A status of 0 is that all is well. 1: a Python exception is set; 2: something about the
arguments, the device or the thread needs a look by Python, and nothing was done. With either, helpers do nothing.

Tensors are read through PyTorch's C interface (`aoti_torch_*`) by their handles. A handle is the address of an
`at::Tensor`, which each tensor's object holds at an offset that the runtime has found and checked; where it found none
(-1), a handle is made of what `tensor._cdata` says. The interpreter's lock is let go while a kernel is launched or
runs, and held otherwise.
"""

from __future__ import annotations

PROGRAM = (
    *("n_arguments", "arguments", "device_type", "allocations", "libraries", "launchers", "devices"),
    *("on_failure", "on_allocation", "without_gradients", "launch", "current_stream", "current_context"),
    *("synchronize", "update", "launch_graph", "is_capturing", "on_stretch", "on_launch"),
    *("tensor_offset", "tensor_type"),
)
"""The words of a program. `launchers`: Python functions, one a launch; 0 where kernels are native. `on_launch` is
called before and after each launch while somebody profiles, and 0 otherwise."""
SIZES = 7
"""Of a launch: grid, block, and bytes of shared memory."""
STRETCH = ("busy", "executable", "nodes", "parameters", "known")
"""The words of kernels that start at once. What is known: of each the 7 sizes, then its cells."""
LAUNCHING, RUNNING, UPDATING, STARTING = range(4)
"""What was being done when the driver refused."""
ARGUMENT = ("kind", "dtype", "is_anywhere", "rank", "sizes", "strides", "offset_bytes", "unused")
TENSOR, INTEGER, FLOAT32, FLOAT64 = range(4)
"""Kinds of arguments."""
MOST_DEVICES = 64

SYMBOLS_OF_PYTHON = (
    *("PyList_Size", "PyList_GetItem", "PyList_SetItem", "PyList_SetSlice", "PyList_New", "PyTuple_GetItem"),
    *("PyObject_Vectorcall", "PyObject_GetAttrString", "PyLong_FromLongLong", "PyLong_AsLongLong", "PyLong_AsVoidPtr"),
    *("PyFloat_AsDouble", "PyErr_Occurred", "PyErr_Clear", "PyType_IsSubtype", "PyCapsule_GetPointer"),
    *("PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "Py_DecRef", "_Py_NoneStruct"),
)
SYMBOLS_OF_TORCH = tuple(
    f"aoti_torch_{name}"
    for name in (
        *("get_data_ptr", "get_dim", "get_sizes", "get_strides", "get_dtype", "get_device_type", "get_device_index"),
        *("get_current_device_index", "grad_mode_is_enabled", "grad_mode_set_enabled"),
    )
)

HELPERS = """
declare i64 @PyList_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i32 @PyList_SetSlice(ptr, i64, i64, ptr)
declare ptr @PyList_New(i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_GetAttrString(ptr, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare i32 @PyType_IsSubtype(ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
@_Py_NoneStruct = external global i8

declare i32 @aoti_torch_get_data_ptr(ptr, ptr)
declare i32 @aoti_torch_get_dim(ptr, ptr)
declare i32 @aoti_torch_get_sizes(ptr, ptr)
declare i32 @aoti_torch_get_strides(ptr, ptr)
declare i32 @aoti_torch_get_dtype(ptr, ptr)
declare i32 @aoti_torch_get_device_type(ptr, ptr)
declare i32 @aoti_torch_get_device_index(ptr, ptr)
declare i32 @aoti_torch_get_current_device_index(ptr)
declare zeroext i1 @aoti_torch_grad_mode_is_enabled()
declare void @aoti_torch_grad_mode_set_enabled(i1 zeroext)

@cdata = private constant [7 x i8] c"_cdata\\00"

; A word of a frame, a program or a list
define internal i64 @get(ptr %words, i64 %number) alwaysinline {
  %place = getelementptr i64, ptr %words, i64 %number
  %word = load i64, ptr %place
  ret i64 %word
}

define internal ptr @get_pointer(ptr %words, i64 %number) alwaysinline {
  %place = getelementptr i64, ptr %words, i64 %number
  %word = load ptr, ptr %place
  ret ptr %word
}

define internal void @set(ptr %words, i64 %number, i64 %word) alwaysinline {
  %place = getelementptr i64, ptr %words, i64 %number
  store i64 %word, ptr %place
  ret void
}

define internal void @set_pointer(ptr %words, i64 %number, ptr %word) alwaysinline {
  %place = getelementptr i64, ptr %words, i64 %number
  store ptr %word, ptr %place
  ret void
}

define internal i1 @is_well(ptr %frame) alwaysinline {
  %status = call i64 @get(ptr %frame, i64 1)
  %is_well = icmp eq i64 %status, 0
  ret i1 %is_well
}

; The handle of a tensor object; `cell` is room for one. Null, and no exception, where the object has none
define internal ptr @handle(ptr %program, ptr %object, ptr %cell) {
  %offset = call i64 @get(ptr %program, i64 {tensor_offset})
  %is_known = icmp sge i64 %offset, 0
  br i1 %is_known, label %known, label %asked
known:
  %at = getelementptr i8, ptr %object, i64 %offset
  ret ptr %at
asked:
  %number = call ptr @PyObject_GetAttrString(ptr %object, ptr @cdata)
  %failed = icmp eq ptr %number, null
  br i1 %failed, label %none, label %made
none:
  call void @PyErr_Clear()
  ret ptr null
made:
  %implementation = call ptr @PyLong_AsVoidPtr(ptr %number)
  call void @Py_DecRef(ptr %number)
  store ptr %implementation, ptr %cell
  ret ptr %cell
}

; Where a tensor's first element is; 0 where it has no memory
define internal i64 @data(ptr %program, ptr %object) {
  %cell = alloca ptr
  %result = alloca i64
  store i64 0, ptr %result
  %tensor = call ptr @handle(ptr %program, ptr %object, ptr %cell)
  %status = call i32 @aoti_torch_get_data_ptr(ptr %tensor, ptr %result)
  %address = load i64, ptr %result
  ret i64 %address
}

; Whether a tensor has the expected sizes, and every element where the expected strides put it
define internal i1 @has_layout(ptr %tensor, ptr %argument) {
entry:
  %cell = alloca ptr
  %rank = call i64 @get(ptr %argument, i64 {rank})
  call i32 @aoti_torch_get_dim(ptr %tensor, ptr %cell)
  %given_rank = load i64, ptr %cell
  %is_rank = icmp eq i64 %rank, %given_rank
  br i1 %is_rank, label %read, label %no
read:
  call i32 @aoti_torch_get_sizes(ptr %tensor, ptr %cell)
  %sizes = load ptr, ptr %cell
  call i32 @aoti_torch_get_strides(ptr %tensor, ptr %cell)
  %strides = load ptr, ptr %cell
  %expected_sizes = call ptr @get_pointer(ptr %argument, i64 {sizes})
  %expected_strides = call ptr @get_pointer(ptr %argument, i64 {strides})
  %is_row_major = icmp eq ptr %expected_strides, null
  br label %loop
loop:
  %left = phi i64 [ %rank, %read ], [ %axis, %next ]
  %running = phi i64 [ 1, %read ], [ %further, %next ]
  %differs = phi i1 [ false, %read ], [ %differs_now, %next ]
  %is_empty = phi i1 [ false, %read ], [ %is_empty_now, %next ]
  %is_end = icmp eq i64 %left, 0
  br i1 %is_end, label %end, label %compare
compare:
  %axis = sub i64 %left, 1
  %size = call i64 @get(ptr %sizes, i64 %axis)
  %expected_size = call i64 @get(ptr %expected_sizes, i64 %axis)
  %is_any = icmp slt i64 %expected_size, 0
  %is_same = icmp eq i64 %size, %expected_size
  %is_size = or i1 %is_any, %is_same
  br i1 %is_size, label %stride, label %no
stride:
  br i1 %is_row_major, label %next, label %given
given:
  %listed = call i64 @get(ptr %expected_strides, i64 %axis)
  br label %next
next:
  %expected_stride = phi i64 [ %running, %stride ], [ %listed, %given ]
  %stride_now = call i64 @get(ptr %strides, i64 %axis)
  %is_other = icmp ne i64 %stride_now, %expected_stride
  %is_long = icmp sgt i64 %size, 1
  %matters = and i1 %is_other, %is_long
  %differs_now = or i1 %differs, %matters
  %is_zero = icmp eq i64 %size, 0
  %is_empty_now = or i1 %is_empty, %is_zero
  %extent = call i64 @llvm.smax.i64(i64 %size, i64 1)
  %further = mul i64 %running, %extent
  br label %loop
end:
  %is_full = xor i1 %is_empty, true
  %is_wrong = and i1 %differs, %is_full
  %is_right = xor i1 %is_wrong, true
  ret i1 %is_right
no:
  ret i1 false
}

declare i64 @llvm.smax.i64(i64, i64)

; Whether an object is a tensor that can be used as it is; its address goes to its cell, its device to the frame
define internal i1 @is_tensor(ptr %frame, ptr %program, ptr %argument, ptr %object, ptr %cell) {
  %room = alloca ptr
  %result = alloca i64
  %type_place = getelementptr i64, ptr %object, i64 1
  %type = load ptr, ptr %type_place
  %tensor_type = call ptr @get_pointer(ptr %program, i64 {tensor_type})
  %is_plain = icmp eq ptr %type, %tensor_type
  br i1 %is_plain, label %tensor, label %ask
ask:
  %is_subtype = call i32 @PyType_IsSubtype(ptr %type, ptr %tensor_type)
  %is_one = icmp ne i32 %is_subtype, 0
  br i1 %is_one, label %tensor, label %no
tensor:
  %handle = call ptr @handle(ptr %program, ptr %object, ptr %room)
  %is_none = icmp eq ptr %handle, null
  br i1 %is_none, label %no, label %dtype
dtype:
  call i32 @aoti_torch_get_dtype(ptr %handle, ptr %result)
  %dtype_now = load i32, ptr %result
  %expected = call i64 @get(ptr %argument, i64 {dtype})
  %expected_dtype = trunc i64 %expected to i32
  %is_dtype = icmp eq i32 %dtype_now, %expected_dtype
  br i1 %is_dtype, label %layout, label %no
layout:
  %has_layout = call i1 @has_layout(ptr %handle, ptr %argument)
  br i1 %has_layout, label %where, label %no
where:
  %anywhere = call i64 @get(ptr %argument, i64 {is_anywhere})
  %is_anywhere = icmp ne i64 %anywhere, 0
  br i1 %is_anywhere, label %address, label %device
device:
  %is_here = call i1 @is_on_device(ptr %frame, ptr %program, ptr %handle)
  br i1 %is_here, label %address, label %no
address:
  store i64 0, ptr %result
  %status = call i32 @aoti_torch_get_data_ptr(ptr %handle, ptr %result)
  %has_memory = icmp eq i32 %status, 0
  br i1 %has_memory, label %alignment, label %no
alignment:
  %first = load i64, ptr %result
  %rest = and i64 %first, 15
  %is_aligned = icmp eq i64 %rest, 0
  br i1 %is_aligned, label %yes, label %no
yes:
  %offset = call i64 @get(ptr %argument, i64 {offset_bytes})
  %base = sub i64 %first, %offset
  store i64 %base, ptr %cell
  ret i1 true
no:
  ret i1 false
}

; The first tensor that kernels read says which device the call is on, the others have to be there too
define internal i1 @is_on_device(ptr %frame, ptr %program, ptr %tensor) {
  %result = alloca i32
  call i32 @aoti_torch_get_device_type(ptr %tensor, ptr %result)
  %type = load i32, ptr %result
  %expected = call i64 @get(ptr %program, i64 {device_type})
  %expected_type = trunc i64 %expected to i32
  %is_type = icmp eq i32 %type, %expected_type
  br i1 %is_type, label %index, label %no
index:
  call i32 @aoti_torch_get_device_index(ptr %tensor, ptr %result)
  %number = load i32, ptr %result
  %index_now = call i32 @llvm.smax.i32(i32 %number, i32 0)
  %given = sext i32 %index_now to i64
  %known = call i64 @get(ptr %frame, i64 2)
  %is_first = icmp slt i64 %known, 0
  br i1 %is_first, label %first, label %compare
first:
  call void @set(ptr %frame, i64 2, i64 %given)
  ret i1 true
compare:
  %is_same = icmp eq i64 %known, %given
  ret i1 %is_same
no:
  ret i1 false
}

declare i32 @llvm.smax.i32(i32, i32)

; Whether an object is a number; it goes to its cell as a kernel takes it
define internal i1 @is_number(i64 %kind, ptr %object, ptr %cell) {
  %is_integer = icmp eq i64 %kind, {INTEGER}
  br i1 %is_integer, label %integer, label %real
integer:
  %whole = call i64 @PyLong_AsLongLong(ptr %object)
  store i64 %whole, ptr %cell
  br label %check
real:
  %wide = call double @PyFloat_AsDouble(ptr %object)
  %is_narrow = icmp eq i64 %kind, {FLOAT32}
  br i1 %is_narrow, label %narrow, label %keep
narrow:
  %single = fptrunc double %wide to float
  store float %single, ptr %cell
  br label %check
keep:
  store double %wide, ptr %cell
  br label %check
check:
  %error = call ptr @PyErr_Occurred()
  %is_number = icmp eq ptr %error, null
  br i1 %is_number, label %yes, label %no
yes:
  ret i1 true
no:
  call void @PyErr_Clear()
  ret i1 false
}

; Starts a call: looks at the arguments and finds the stream. Only then are they taken from the list
define void @fusion_begin(ptr %frame, ptr %self, ptr %inputs, i64 %objects) {
entry:
  %program = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
  %words = add i64 %objects, 8
  %bytes = mul i64 %words, 8
  call void @llvm.memset.p0.i64(ptr %frame, i8 0, i64 %bytes, i1 false)
  call void @set_pointer(ptr %frame, i64 0, ptr %program)
  call void @set(ptr %frame, i64 1, i64 2)
  call void @set(ptr %frame, i64 2, i64 -1)
  call void @set_pointer(ptr %frame, i64 5, ptr %inputs)
  %count = call i64 @get(ptr %program, i64 {n_arguments})
  %given = call i64 @PyList_Size(ptr %inputs)
  %is_count = icmp eq i64 %count, %given
  br i1 %is_count, label %loop, label %declined
loop:
  %number = phi i64 [ 0, %entry ], [ %next, %step ]
  %is_end = icmp eq i64 %number, %count
  br i1 %is_end, label %device, label %look
look:
  %object = call ptr @PyList_GetItem(ptr %inputs, i64 %number)
  %arguments = call ptr @get_pointer(ptr %program, i64 {arguments})
  %argument = getelementptr [8 x i64], ptr %arguments, i64 %number
  %cell_number = add i64 %words, %number
  %cell = getelementptr i64, ptr %frame, i64 %cell_number
  %kind = call i64 @get(ptr %argument, i64 {kind})
  %is_tensor = icmp eq i64 %kind, {TENSOR}
  br i1 %is_tensor, label %tensor, label %scalar
tensor:
  %fits = call i1 @is_tensor(ptr %frame, ptr %program, ptr %argument, ptr %object, ptr %cell)
  br i1 %fits, label %step, label %declined
scalar:
  %is_number = call i1 @is_number(i64 %kind, ptr %object, ptr %cell)
  br i1 %is_number, label %step, label %declined
step:
  %next = add i64 %number, 1
  br label %loop
device:
  %is_ready = call i1 @find_device(ptr %frame, ptr %program)
  br i1 %is_ready, label %take, label %declined
take:
  call void @take_arguments(ptr %frame, ptr %inputs, i64 %count)
  call void @stop_gradients(ptr %frame, ptr %program)
  call void @set(ptr %frame, i64 1, i64 0)
  ret void
declined:
  ret void
}

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; Whether the current device is that of the arguments, what is needed of it was loaded, and the thread can use it
define internal i1 @find_device(ptr %frame, ptr %program) {
  %result = alloca i64
  %type = call i64 @get(ptr %program, i64 {device_type})
  %is_cpu = icmp eq i64 %type, 0
  br i1 %is_cpu, label %processor, label %gpu
processor:
  call void @set(ptr %frame, i64 2, i64 0)
  br label %loaded
gpu:
  store i32 -1, ptr %result
  call i32 @aoti_torch_get_current_device_index(ptr %result)
  %number = load i32, ptr %result
  %current = sext i32 %number to i64
  %known = call i64 @get(ptr %frame, i64 2)
  %is_unknown = icmp slt i64 %known, 0
  %is_same = icmp eq i64 %known, %current
  %is_right = or i1 %is_unknown, %is_same
  br i1 %is_right, label %context, label %no
context:
  call void @set(ptr %frame, i64 2, i64 %current)
  %ask_context = call ptr @get_pointer(ptr %program, i64 {current_context})
  %launches_in_python = icmp eq ptr %ask_context, null
  br i1 %launches_in_python, label %loaded, label %thread
thread:
  call i32 %ask_context(ptr %result)
  %bound = load ptr, ptr %result
  %has_none = icmp eq ptr %bound, null
  br i1 %has_none, label %no, label %stream
stream:
  %ask_stream = call ptr @get_pointer(ptr %program, i64 {current_stream})
  call i32 %ask_stream(i32 %number, ptr %result)
  %stream_now = load i64, ptr %result
  call void @set(ptr %frame, i64 3, i64 %stream_now)
  br label %loaded
loaded:
  %index = call i64 @get(ptr %frame, i64 2)
  %devices = call ptr @get_pointer(ptr %program, i64 {devices})
  %here = call ptr @get_pointer(ptr %devices, i64 %index)
  call void @set_pointer(ptr %frame, i64 4, ptr %here)
  %is_loaded = icmp ne ptr %here, null
  ret i1 %is_loaded
no:
  ret i1 false
}

define internal void @take_arguments(ptr %frame, ptr %inputs, i64 %count) {
entry:
  br label %loop
loop:
  %number = phi i64 [ 0, %entry ], [ %next, %step ]
  %is_end = icmp eq i64 %number, %count
  br i1 %is_end, label %end, label %step
step:
  %object = call ptr @PyList_GetItem(ptr %inputs, i64 %number)
  call void @Py_IncRef(ptr %object)
  %word = add i64 %number, 8
  call void @set_pointer(ptr %frame, i64 %word, ptr %object)
  %next = add i64 %number, 1
  br label %loop
end:
  call i32 @PyList_SetSlice(ptr %inputs, i64 0, i64 %count, ptr null)
  ret void
}

define internal void @stop_gradients(ptr %frame, ptr %program) {
  %wanted = call i64 @get(ptr %program, i64 {without_gradients})
  %is_wanted = icmp ne i64 %wanted, 0
  br i1 %is_wanted, label %look, label %end
look:
  %is_on = call zeroext i1 @aoti_torch_grad_mode_is_enabled()
  br i1 %is_on, label %stop, label %end
stop:
  call void @aoti_torch_grad_mode_set_enabled(i1 zeroext false)
  call void @set(ptr %frame, i64 6, i64 1)
  br label %end
end:
  ret void
}

; Keeps a new object in its word; null means that an exception is set
define internal i1 @keep(ptr %frame, i64 %word, ptr %object) {
  %is_none = icmp eq ptr %object, null
  br i1 %is_none, label %failed, label %kept
failed:
  call void @set(ptr %frame, i64 1, i64 1)
  ret i1 false
kept:
  call void @set_pointer(ptr %frame, i64 %word, ptr %object)
  ret i1 true
}

; Calls a Python function with one to three numbers
define internal ptr @call_with(ptr %function, i64 %count, i64 %one, i64 %two, i64 %three) {
  %list = alloca [3 x ptr]
  %first = call ptr @PyLong_FromLongLong(i64 %one)
  %second = call ptr @PyLong_FromLongLong(i64 %two)
  %third = call ptr @PyLong_FromLongLong(i64 %three)
  call void @set_pointer(ptr %list, i64 0, ptr %first)
  call void @set_pointer(ptr %list, i64 1, ptr %second)
  call void @set_pointer(ptr %list, i64 2, ptr %third)
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %list, i64 %count, ptr null)
  call void @drop_all(ptr %list, i64 3)
  ret ptr %result
}

; A new tensor. Where PyTorch has no memory, Python tries again, and says what it is for
define void @fusion_allocate(ptr %frame, i64 %word, i64 %cell, i64 %number) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %try, label %end
try:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %allocations = call ptr @get_pointer(ptr %program, i64 {allocations})
  %allocation = getelementptr [4 x ptr], ptr %allocations, i64 %number
  %function = load ptr, ptr %allocation
  %operands = getelementptr ptr, ptr %allocation, i64 1
  %tensor = call ptr @PyObject_Vectorcall(ptr %function, ptr %operands, i64 3, ptr null)
  %is_made = icmp ne ptr %tensor, null
  br i1 %is_made, label %made, label %again
again:
  call void @PyErr_Clear()
  %retry = call ptr @get_pointer(ptr %program, i64 {on_allocation})
  %second = call ptr @call_with(ptr %retry, i64 1, i64 %number, i64 0, i64 0)
  br label %made
made:
  %object = phi ptr [ %tensor, %try ], [ %second, %again ]
  %is_kept = call i1 @keep(ptr %frame, i64 %word, ptr %object)
  br i1 %is_kept, label %found, label %end
found:
  %address = call i64 @data(ptr %program, ptr %object)
  call void @set(ptr %frame, i64 %cell, i64 %address)
  br label %end
end:
  ret void
}

; A constant of the program, where it lies on this device
define void @fusion_constant(ptr %frame, i64 %word, i64 %cell, i64 %number) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %find, label %end
find:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %here = call ptr @get_pointer(ptr %frame, i64 4)
  %constants = call ptr @get_pointer(ptr %here, i64 1)
  %object = call ptr @get_pointer(ptr %constants, i64 %number)
  call void @Py_IncRef(ptr %object)
  call void @set_pointer(ptr %frame, i64 %word, ptr %object)
  %address = call i64 @data(ptr %program, ptr %object)
  call void @set(ptr %frame, i64 %cell, i64 %address)
  br label %end
end:
  ret void
}

; A Python integer, for a library
define void @fusion_number(ptr %frame, i64 %word, i64 %value) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %make, label %end
make:
  %object = call ptr @PyLong_FromLongLong(i64 %value)
  call i1 @keep(ptr %frame, i64 %word, ptr %object)
  br label %end
end:
  ret void
}

; What kernels are handed of a library's result
define void @fusion_address(ptr %frame, i64 %word, i64 %cell, i64 %offset) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %find, label %end
find:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %object = call ptr @get_pointer(ptr %frame, i64 %word)
  %first = call i64 @data(ptr %program, ptr %object)
  %base = sub i64 %first, %offset
  call void @set(ptr %frame, i64 %cell, i64 %base)
  br label %end
end:
  ret void
}

; An object that nobody needs any more
define void @fusion_release(ptr %frame, i64 %word) {
  %object = call ptr @get_pointer(ptr %frame, i64 %word)
  call void @set(ptr %frame, i64 %word, i64 0)
  call void @Py_DecRef(ptr %object)
  ret void
}

; Python raises what the status of a launch, or of what else was done for it, means
define internal void @fail(ptr %frame, i64 %status, i64 %number, i64 %doing) {
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %function = call ptr @get_pointer(ptr %program, i64 {on_failure})
  %nothing = call ptr @call_with(ptr %function, i64 3, i64 %status, i64 %number, i64 %doing)
  call void @Py_DecRef(ptr %nothing)
  call void @set(ptr %frame, i64 1, i64 1)
  ret void
}

; Pointers to the cells with these numbers
define internal void @point(ptr %frame, i64 %count, ptr %words, ptr %pointers) {
entry:
  br label %loop
loop:
  %number = phi i64 [ 0, %entry ], [ %next, %step ]
  %is_end = icmp eq i64 %number, %count
  br i1 %is_end, label %end, label %step
step:
  %word = call i64 @get(ptr %words, i64 %number)
  %cell = getelementptr i64, ptr %frame, i64 %word
  call void @set_pointer(ptr %pointers, i64 %number, ptr %cell)
  %next = add i64 %number, 1
  br label %loop
end:
  ret void
}

; Tells Python that a launch begins (1) or has ended (0), if it wants to know
define internal void @tell(ptr %program, i64 %number, i64 %begins) {
  %function = call ptr @get_pointer(ptr %program, i64 {on_launch})
  %is_none = icmp eq ptr %function, null
  br i1 %is_none, label %end, label %call
call:
  %nothing = call ptr @call_with(ptr %function, i64 2, i64 %number, i64 %begins, i64 0)
  %has_failed = icmp eq ptr %nothing, null
  br i1 %has_failed, label %failed, label %told
failed:
  call void @PyErr_Clear()
  ret void
told:
  call void @Py_DecRef(ptr %nothing)
  ret void
end:
  ret void
}

; A kernel of a GPU, unless there is nothing for it to do
define void @fusion_launch(ptr %frame, i64 %number, i64 %gx, i64 %gy, i64 %gz,
                           i64 %bx, i64 %by, i64 %bz, i64 %shared, i64 %count, ptr %words) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %size, label %end
size:
  %gxy = mul i64 %gx, %gy
  %blocks = mul i64 %gxy, %gz
  %is_empty = icmp eq i64 %blocks, 0
  br i1 %is_empty, label %end, label %kind
kind:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %launchers = call ptr @get_pointer(ptr %program, i64 {launchers})
  %is_native = icmp eq ptr %launchers, null
  br i1 %is_native, label %native, label %python
python:
  call void @launch_in_python(ptr %frame, ptr %launchers, i64 %number, i64 %count, ptr %words)
  ret void
native:
  %pointers = alloca ptr, i64 %count
  call void @point(ptr %frame, i64 %count, ptr %words, ptr %pointers)
  %here = call ptr @get_pointer(ptr %frame, i64 4)
  %functions = call ptr @get_pointer(ptr %here, i64 0)
  %function = call ptr @get_pointer(ptr %functions, i64 %number)
  %stream = call ptr @get_pointer(ptr %frame, i64 3)
  %launch = call ptr @get_pointer(ptr %program, i64 {launch})
  %gx32 = trunc i64 %gx to i32
  %gy32 = trunc i64 %gy to i32
  %gz32 = trunc i64 %gz to i32
  %bx32 = trunc i64 %bx to i32
  %by32 = trunc i64 %by to i32
  %bz32 = trunc i64 %bz to i32
  %shared32 = trunc i64 %shared to i32
  call void @tell(ptr %program, i64 %number, i64 1)
  %thread = call ptr @PyEval_SaveThread()
  %launched = call i32 %launch(ptr %function, i32 %gx32, i32 %gy32, i32 %gz32,
    i32 %bx32, i32 %by32, i32 %bz32, i32 %shared32, ptr %stream, ptr %pointers, ptr null)
  %synchronize = call ptr @get_pointer(ptr %program, i64 {synchronize})
  %waits = icmp ne ptr %synchronize, null
  %is_launched = icmp eq i32 %launched, 0
  %is_waited_for = and i1 %waits, %is_launched
  br i1 %is_waited_for, label %wait, label %done
wait:
  %waited = call i32 %synchronize()
  br label %done
done:
  %status = phi i32 [ %launched, %native ], [ %waited, %wait ]
  %doing = phi i64 [ {LAUNCHING}, %native ], [ {RUNNING}, %wait ]
  call void @PyEval_RestoreThread(ptr %thread)
  call void @tell(ptr %program, i64 %number, i64 0)
  %has_failed = icmp ne i32 %status, 0
  br i1 %has_failed, label %failed, label %end
failed:
  %wide = sext i32 %status to i64
  call void @fail(ptr %frame, i64 %wide, i64 %number, i64 %doing)
  ret void
end:
  ret void
}

; A kernel of the CPU
define void @fusion_call(ptr %frame, i64 %number, ptr %thunk, i64 %count, ptr %words) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %kind, label %end
kind:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %launchers = call ptr @get_pointer(ptr %program, i64 {launchers})
  %is_native = icmp eq ptr %launchers, null
  br i1 %is_native, label %native, label %python
python:
  call void @launch_in_python(ptr %frame, ptr %launchers, i64 %number, i64 %count, ptr %words)
  ret void
native:
  %pointers = alloca ptr, i64 %count
  call void @point(ptr %frame, i64 %count, ptr %words, ptr %pointers)
  %here = call ptr @get_pointer(ptr %frame, i64 4)
  %kernels = call ptr @get_pointer(ptr %here, i64 0)
  %kernel = call ptr @get_pointer(ptr %kernels, i64 %number)
  call void @tell(ptr %program, i64 %number, i64 1)
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %thunk(ptr %kernel, ptr %pointers)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @tell(ptr %program, i64 %number, i64 0)
  %has_failed = icmp ne i32 %status, 0
  br i1 %has_failed, label %failed, label %end
failed:
  %wide = sext i32 %status to i64
  call void @fail(ptr %frame, i64 %wide, i64 %number, i64 {RUNNING})
  ret void
end:
  ret void
}

; A kernel that a Python function runs, with the cells as integers
define internal void @launch_in_python(ptr %frame, ptr %launchers, i64 %number, i64 %count, ptr %words) {
entry:
  %objects = alloca ptr, i64 %count
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %step ]
  %is_end = icmp eq i64 %i, %count
  br i1 %is_end, label %run, label %step
step:
  %word = call i64 @get(ptr %words, i64 %i)
  %value = call i64 @get(ptr %frame, i64 %word)
  %object = call ptr @PyLong_FromLongLong(i64 %value)
  call void @set_pointer(ptr %objects, i64 %i, ptr %object)
  %next = add i64 %i, 1
  br label %loop
run:
  %function = call ptr @get_pointer(ptr %launchers, i64 %number)
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %objects, i64 %count, ptr null)
  call void @drop_all(ptr %objects, i64 %count)
  %has_failed = icmp eq ptr %result, null
  br i1 %has_failed, label %failed, label %ran
failed:
  call void @set(ptr %frame, i64 1, i64 1)
  ret void
ran:
  call void @Py_DecRef(ptr %result)
  ret void
}

define internal void @drop_all(ptr %objects, i64 %count) {
entry:
  br label %loop
loop:
  %number = phi i64 [ 0, %entry ], [ %next, %step ]
  %is_end = icmp eq i64 %number, %count
  br i1 %is_end, label %end, label %step
step:
  %object = call ptr @get_pointer(ptr %objects, i64 %number)
  call void @Py_DecRef(ptr %object)
  %next = add i64 %number, 1
  br label %loop
end:
  ret void
}

; A library call: a Python function of the operands. One result is the object that it returns; several are a tuple
define void @fusion_library(ptr %frame, i64 %number, i64 %count, ptr %operands, i64 %returned, ptr %results) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %prepare, label %end
prepare:
  %objects = alloca ptr, i64 %count
  br label %loop
loop:
  %i = phi i64 [ 0, %prepare ], [ %next, %step ]
  %is_end = icmp eq i64 %i, %count
  br i1 %is_end, label %run, label %step
step:
  %word = call i64 @get(ptr %operands, i64 %i)
  %object = call ptr @get_pointer(ptr %frame, i64 %word)
  call void @set_pointer(ptr %objects, i64 %i, ptr %object)
  %next = add i64 %i, 1
  br label %loop
run:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %libraries = call ptr @get_pointer(ptr %program, i64 {libraries})
  %function = call ptr @get_pointer(ptr %libraries, i64 %number)
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %objects, i64 %count, ptr null)
  %has_failed = icmp eq ptr %result, null
  br i1 %has_failed, label %failed, label %ran
failed:
  call void @set(ptr %frame, i64 1, i64 1)
  ret void
ran:
  %is_one = icmp eq i64 %returned, 1
  br i1 %is_one, label %one, label %unpack
one:
  %only = call i64 @get(ptr %results, i64 0)
  call void @set_pointer(ptr %frame, i64 %only, ptr %result)
  ret void
unpack:
  %k = phi i64 [ 0, %ran ], [ %after, %item ]
  %is_last = icmp eq i64 %k, %returned
  br i1 %is_last, label %dropped, label %item
item:
  %part = call ptr @PyTuple_GetItem(ptr %result, i64 %k)
  call void @Py_IncRef(ptr %part)
  %place = call i64 @get(ptr %results, i64 %k)
  call void @set_pointer(ptr %frame, i64 %place, ptr %part)
  %after = add i64 %k, 1
  br label %unpack
dropped:
  call void @Py_DecRef(ptr %result)
  ret void
end:
  ret void
}

; Starts several kernels of a GPU at once: the plan has a number, the word of the first of 7 sizes, a count, and as many
; words, for each. They are nodes of an executable graph, which is told of the sizes and cells that are not as last
; time. While another thread uses it, or the caller records a graph, they are launched one after the other
define void @fusion_start(ptr %frame, i64 %number, i64 %count, ptr %plan) {
  %is_well = call i1 @is_well(ptr %frame)
  br i1 %is_well, label %find, label %end
find:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %is_alone = call i1 @is_alone(ptr %frame, ptr %program, i64 %count, ptr %plan)
  br i1 %is_alone, label %one_by_one, label %look
look:
  %here = call ptr @get_pointer(ptr %frame, i64 4)
  %stretches = call ptr @get_pointer(ptr %here, i64 2)
  %known = call ptr @get_pointer(ptr %stretches, i64 %number)
  %is_new = icmp eq ptr %known, null
  br i1 %is_new, label %build, label %ready
build:
  %device = call i64 @get(ptr %frame, i64 2)
  %builds = call ptr @get_pointer(ptr %program, i64 {on_stretch})
  %nothing = call ptr @call_with(ptr %builds, i64 2, i64 %device, i64 %number, i64 0)
  %has_failed = icmp eq ptr %nothing, null
  br i1 %has_failed, label %failed, label %built
failed:
  call void @set(ptr %frame, i64 1, i64 1)
  ret void
built:
  call void @Py_DecRef(ptr %nothing)
  br label %ready
ready:
  %stretch = call ptr @get_pointer(ptr %stretches, i64 %number)
  %busy = call i64 @get(ptr %stretch, i64 {busy})
  %is_busy = icmp ne i64 %busy, 0
  br i1 %is_busy, label %one_by_one, label %graph
graph:
  call void @set(ptr %stretch, i64 {busy}, i64 1)
  call void @launch_graph(ptr %frame, ptr %program, ptr %stretch, i64 %number, i64 %count, ptr %plan)
  call void @set(ptr %stretch, i64 {busy}, i64 0)
  ret void
one_by_one:
  call void @launch_all(ptr %frame, i64 %count, ptr %plan)
  ret void
end:
  ret void
}

; Whether kernels have to be launched one by one: each is waited for, told of, or recorded, or one has no blocks
define internal i1 @is_alone(ptr %frame, ptr %program, i64 %count, ptr %plan) {
entry:
  %recording = alloca i64
  %synchronize = call ptr @get_pointer(ptr %program, i64 {synchronize})
  %waits = icmp ne ptr %synchronize, null
  %on_launch = call ptr @get_pointer(ptr %program, i64 {on_launch})
  %is_told = icmp ne ptr %on_launch, null
  %is_apart = or i1 %waits, %is_told
  br i1 %is_apart, label %yes, label %ask
ask:
  store i64 0, ptr %recording
  %is_capturing = call ptr @get_pointer(ptr %program, i64 {is_capturing})
  %stream = call ptr @get_pointer(ptr %frame, i64 3)
  call i32 %is_capturing(ptr %stream, ptr %recording)
  %mode = load i32, ptr %recording
  %is_recorded = icmp ne i32 %mode, 0
  br i1 %is_recorded, label %yes, label %loop
loop:
  %i = phi i64 [ 0, %ask ], [ %after, %check ]
  %entry_now = phi ptr [ %plan, %ask ], [ %following, %check ]
  %is_end = icmp eq i64 %i, %count
  br i1 %is_end, label %no, label %check
check:
  %size_word = call i64 @get(ptr %entry_now, i64 1)
  %sizes = getelementptr i64, ptr %frame, i64 %size_word
  %gx = call i64 @get(ptr %sizes, i64 0)
  %gy = call i64 @get(ptr %sizes, i64 1)
  %gz = call i64 @get(ptr %sizes, i64 2)
  %gxy = mul i64 %gx, %gy
  %blocks = mul i64 %gxy, %gz
  %following = call ptr @next_entry(ptr %entry_now)
  %after = add i64 %i, 1
  %is_empty = icmp eq i64 %blocks, 0
  br i1 %is_empty, label %yes, label %loop
yes:
  ret i1 true
no:
  ret i1 false
}

define internal ptr @next_entry(ptr %entry) {
  %cells = call i64 @get(ptr %entry, i64 2)
  %length = add i64 %cells, 3
  %next = getelementptr i64, ptr %entry, i64 %length
  ret ptr %next
}

define internal void @launch_all(ptr %frame, i64 %count, ptr %plan) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %after, %step ]
  %one = phi ptr [ %plan, %entry ], [ %following, %step ]
  %is_end = icmp eq i64 %i, %count
  br i1 %is_end, label %end, label %step
step:
  %number = call i64 @get(ptr %one, i64 0)
  %size_word = call i64 @get(ptr %one, i64 1)
  %cells = call i64 @get(ptr %one, i64 2)
  %words = getelementptr i64, ptr %one, i64 3
  %sizes = getelementptr i64, ptr %frame, i64 %size_word
  %gx = call i64 @get(ptr %sizes, i64 0)
  %gy = call i64 @get(ptr %sizes, i64 1)
  %gz = call i64 @get(ptr %sizes, i64 2)
  %bx = call i64 @get(ptr %sizes, i64 3)
  %by = call i64 @get(ptr %sizes, i64 4)
  %bz = call i64 @get(ptr %sizes, i64 5)
  %shared = call i64 @get(ptr %sizes, i64 6)
  call void @fusion_launch(ptr %frame, i64 %number, i64 %gx, i64 %gy, i64 %gz,
                           i64 %bx, i64 %by, i64 %bz, i64 %shared, i64 %cells, ptr %words)
  %following = call ptr @next_entry(ptr %one)
  %after = add i64 %i, 1
  br label %loop
end:
  ret void
}

define internal void @launch_graph(ptr %frame, ptr %program, ptr %stretch, i64 %number, i64 %count, ptr %plan) {
entry:
  %executable = call ptr @get_pointer(ptr %stretch, i64 {executable})
  %all_known = call ptr @get_pointer(ptr %stretch, i64 {known})
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %after, %updated ]
  %one = phi ptr [ %plan, %entry ], [ %following, %updated ]
  %known = phi ptr [ %all_known, %entry ], [ %known_next, %updated ]
  %is_end = icmp eq i64 %i, %count
  br i1 %is_end, label %launch, label %step
step:
  %differs = call i1 @note(ptr %frame, ptr %one, ptr %known)
  br i1 %differs, label %update, label %updated
update:
  %status = call i32 @update(ptr %program, ptr %stretch, i64 %i, ptr %known)
  %is_updated = icmp eq i32 %status, 0
  br i1 %is_updated, label %updated, label %not_updated
not_updated:
  %which = call i64 @get(ptr %one, i64 0)
  %wide = sext i32 %status to i64
  call void @fail(ptr %frame, i64 %wide, i64 %which, i64 {UPDATING})
  ret void
updated:
  %cells = call i64 @get(ptr %one, i64 2)
  %length = add i64 %cells, 7
  %known_next = getelementptr i64, ptr %known, i64 %length
  %following = call ptr @next_entry(ptr %one)
  %after = add i64 %i, 1
  br label %loop
launch:
  %stream = call ptr @get_pointer(ptr %frame, i64 3)
  %start = call ptr @get_pointer(ptr %program, i64 {launch_graph})
  %thread = call ptr @PyEval_SaveThread()
  %outcome = call i32 %start(ptr %executable, ptr %stream)
  call void @PyEval_RestoreThread(ptr %thread)
  %is_launched = icmp eq i32 %outcome, 0
  br i1 %is_launched, label %end, label %failed
failed:
  %wide_outcome = sext i32 %outcome to i64
  call void @fail(ptr %frame, i64 %wide_outcome, i64 %number, i64 {STARTING})
  ret void
end:
  ret void
}

; Copies a launch's sizes and cells to what is known of it; whether anything was different
define internal i1 @note(ptr %frame, ptr %one, ptr %known) {
entry:
  %size_word = call i64 @get(ptr %one, i64 1)
  %cells = call i64 @get(ptr %one, i64 2)
  %words = getelementptr i64, ptr %one, i64 3
  %total = add i64 %cells, 7
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %after, %compare ]
  %differs = phi i1 [ false, %entry ], [ %differs_now, %compare ]
  %is_end = icmp eq i64 %i, %total
  br i1 %is_end, label %end, label %step
step:
  %is_size = icmp ult i64 %i, 7
  br i1 %is_size, label %size, label %cell
size:
  %place = add i64 %size_word, %i
  br label %compare
cell:
  %index = sub i64 %i, 7
  %listed = call i64 @get(ptr %words, i64 %index)
  br label %compare
compare:
  %word = phi i64 [ %place, %size ], [ %listed, %cell ]
  %value = call i64 @get(ptr %frame, i64 %word)
  %before = call i64 @get(ptr %known, i64 %i)
  call void @set(ptr %known, i64 %i, i64 %value)
  %is_other = icmp ne i64 %value, %before
  %differs_now = or i1 %differs, %is_other
  %after = add i64 %i, 1
  br label %loop
end:
  ret i1 %differs
}

; Tells the executable what is known of a launch. Its node's parameters point at the cells that are known; the sizes are
; 32-bit numbers behind the function. Where the driver refuses, nothing is known any more
define internal i32 @update(ptr %program, ptr %stretch, i64 %number, ptr %known) {
entry:
  %executable = call ptr @get_pointer(ptr %stretch, i64 {executable})
  %nodes = call ptr @get_pointer(ptr %stretch, i64 {nodes})
  %node = call ptr @get_pointer(ptr %nodes, i64 %number)
  %lists = call ptr @get_pointer(ptr %stretch, i64 {parameters})
  %parameters = call ptr @get_pointer(ptr %lists, i64 %number)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %after, %step ]
  %is_end = icmp eq i64 %i, 7
  br i1 %is_end, label %tell, label %step
step:
  %size = call i64 @get(ptr %known, i64 %i)
  %narrow = trunc i64 %size to i32
  %field = add i64 %i, 2
  %place = getelementptr i32, ptr %parameters, i64 %field
  store i32 %narrow, ptr %place
  %after = add i64 %i, 1
  br label %loop
tell:
  %function = call ptr @get_pointer(ptr %program, i64 {update})
  %status = call i32 %function(ptr %executable, ptr %node, ptr %parameters)
  %is_told = icmp eq i32 %status, 0
  br i1 %is_told, label %end, label %refused
refused:
  call void @set(ptr %known, i64 0, i64 -1)
  br label %end
end:
  ret i32 %status
}

; Ends a call: a list of results, None where nothing was done, null where an exception is set
define ptr @fusion_finish(ptr %frame, i64 %objects, i64 %count, ptr %words) {
entry:
  %program = call ptr @get_pointer(ptr %frame, i64 0)
  %status = call i64 @get(ptr %frame, i64 1)
  %was_on = call i64 @get(ptr %frame, i64 6)
  %is_on = icmp ne i64 %was_on, 0
  br i1 %is_on, label %gradients, label %outcome
gradients:
  call void @aoti_torch_grad_mode_set_enabled(i1 zeroext true)
  br label %outcome
outcome:
  switch i64 %status, label %drop [ i64 0, label %well
                                    i64 2, label %declined ]
declined:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
well:
  %list = call ptr @PyList_New(i64 %count)
  %is_none = icmp eq ptr %list, null
  br i1 %is_none, label %drop, label %loop
loop:
  %i = phi i64 [ 0, %well ], [ %next, %step ]
  %is_end = icmp eq i64 %i, %count
  br i1 %is_end, label %drop, label %step
step:
  %word = call i64 @get(ptr %words, i64 %i)
  %object = call ptr @get_pointer(ptr %frame, i64 %word)
  call void @Py_IncRef(ptr %object)
  call i32 @PyList_SetItem(ptr %list, i64 %i, ptr %object)
  %next = add i64 %i, 1
  br label %loop
drop:
  %result = phi ptr [ null, %outcome ], [ null, %well ], [ %list, %loop ]
  %all = getelementptr i64, ptr %frame, i64 8
  call void @drop_all(ptr %all, i64 %objects)
  ret ptr %result
}
"""


def helpers() -> str:
    """The helpers, with the numbers of the words they read in place."""
    numbers = {name: number for words in (PROGRAM, ARGUMENT, STRETCH) for number, name in enumerate(words)}
    kinds = {"TENSOR": TENSOR, "INTEGER": INTEGER, "FLOAT32": FLOAT32, "FLOAT64": FLOAT64}
    doing = {"LAUNCHING": LAUNCHING, "RUNNING": RUNNING, "UPDATING": UPDATING, "STARTING": STARTING}
    text = HELPERS
    for name, number in {**numbers, **kinds, **doing}.items():
        text = text.replace("{" + name + "}", str(number))
    return text
