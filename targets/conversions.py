"""Conversions to and from 16-bit floats, for hosts without instructions for them.

Where the processor can't convert, LLVM calls functions that a C compiler would take from its runtime library:
`__truncsfhf2` (float to half), `__truncsfbf2` (float to bfloat) and so on. A process need not have them, so
here they are, in LLVM IR. All round to nearest, ties to even; a NaN stays a NaN and keeps the high bits of
its payload; subnormal numbers are not flushed.

A double is narrowed to a float first, *rounding to odd*: an inexact result gets its last bit set, which
stands for "and a little more". The second rounding then sees on which side of a tie the double was, so that
rounding twice gives what rounding once would."""

CONVERSIONS = """
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %is_nan = fcmp uno float %x, %x
  %quiet = or i32 %bits, 4194304             ; so that a payload of low bits only doesn't become infinity
  %shifted = lshr i32 %bits, 16
  %odd = and i32 %shifted, 1
  %half_ulp = add i32 %odd, 32767
  %rounded = add i32 %bits, %half_ulp        ; a carry goes into the exponent, up to infinity
  %result = select i1 %is_nan, i32 %quiet, i32 %rounded
  %high = lshr i32 %result, 16
  %narrow = trunc i32 %high to i16
  %y = bitcast i16 %narrow to bfloat
  ret bfloat %y
}

define half @__truncsfhf2(float %x) {
  %bits = bitcast float %x to i32
  %magnitude = and i32 %bits, 2147483647
  %absolute = bitcast i32 %magnitude to float

  ; Normal: another exponent bias, 13 bits less
  %rebiased = sub i32 %magnitude, 939524096  ; (127 - 15) << 23
  %shifted = lshr i32 %rebiased, 13
  %odd = and i32 %shifted, 1
  %half_ulp = add i32 %odd, 4095
  %rounded = add i32 %rebiased, %half_ulp
  %normal = lshr i32 %rounded, 13

  ; Below 2^-14: 0.5 has as its last place a half's smallest subnormal, so the addition rounds
  %aligned = fadd float %absolute, 0x3FE0000000000000
  %aligned_bits = bitcast float %aligned to i32
  %subnormal = sub i32 %aligned_bits, 1056964608

  ; NaN: quiet, with the payload's high bits
  %payload = lshr i32 %magnitude, 13
  %payload_bits = and i32 %payload, 1023
  %nan = or i32 %payload_bits, 32256

  %is_subnormal = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %is_large = icmp uge i32 %magnitude, 1199566848
  %ordered = select i1 %is_large, i32 31744, i32 %finite
  %is_nan = icmp ugt i32 %magnitude, 2139095040
  %unsigned = select i1 %is_nan, i32 %nan, i32 %ordered
  %sign_bits = lshr i32 %bits, 16
  %sign = and i32 %sign_bits, 32768
  %result = or i32 %unsigned, %sign
  %narrow = trunc i32 %result to i16
  %y = bitcast i16 %narrow to half
  ret half %y
}

define float @__extendhfsf2(half %x) {
  %bits = bitcast half %x to i16
  %wide = zext i16 %bits to i32
  %magnitude = and i32 %wide, 32767
  %shifted = shl i32 %magnitude, 13
  %normal = add i32 %shifted, 939524096
  %count = uitofp i32 %magnitude to float
  %scaled = fmul float %count, 0x3E70000000000000
  %subnormal = bitcast float %scaled to i32
  %special = or i32 %shifted, 2139095040
  %quiet = or i32 %special, 4194304
  %is_subnormal = icmp ult i32 %magnitude, 1024
  %finite = select i1 %is_subnormal, i32 %subnormal, i32 %normal
  %is_special = icmp uge i32 %magnitude, 31744
  %ordered = select i1 %is_special, i32 %special, i32 %finite
  %is_nan = icmp ugt i32 %magnitude, 31744
  %unsigned = select i1 %is_nan, i32 %quiet, i32 %ordered
  %sign_bit = and i32 %wide, 32768
  %sign = shl i32 %sign_bit, 16
  %result = or i32 %unsigned, %sign
  %y = bitcast i32 %result to float
  ret float %y
}

define internal float @round_to_odd(double %x) {
  %nearest = fptrunc double %x to float
  %back = fpext float %nearest to double
  %bits = bitcast float %nearest to i32
  %magnitude = call double @llvm.fabs.f64(double %x)
  %back_magnitude = call double @llvm.fabs.f64(double %back)
  %is_away = fcmp ogt double %back_magnitude, %magnitude
  %below = sub i32 %bits, 1
  %toward_zero = select i1 %is_away, i32 %below, i32 %bits
  %is_inexact = fcmp one double %back, %x
  %sticky = zext i1 %is_inexact to i32
  %result = or i32 %toward_zero, %sticky
  %y = bitcast i32 %result to float
  ret float %y
}

define bfloat @__truncdfbf2(double %x) {
  %odd = call float @round_to_odd(double %x)
  %y = call bfloat @__truncsfbf2(float %odd)
  ret bfloat %y
}

define half @__truncdfhf2(double %x) {
  %odd = call float @round_to_odd(double %x)
  %y = call half @__truncsfhf2(float %odd)
  ret half %y
}

declare double @llvm.fabs.f64(double)
"""
