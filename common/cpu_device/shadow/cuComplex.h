/// @file
/// Shadow of <cuComplex.h>: complex numbers as vectors of two.
#pragma once
#include <cuda_runtime.h>

#include <cmath>

/// Quotients divide both numbers by the size of the divisor first, so that no square leaves the range.
#define CPU_DEVICE_COMPLEX(Complex, Vector, Number, f)                                                    \
  using Complex = Vector;                                                                                 \
  inline Complex make_##Complex(Number real, Number imaginary) { return make_##Vector(real, imaginary); } \
  inline Number cuCreal##f(Complex a) { return a.x; }                                                     \
  inline Number cuCimag##f(Complex a) { return a.y; }                                                     \
  inline Complex cuConj##f(Complex a) { return make_##Complex(a.x, -a.y); }                               \
  inline Number cuCabs##f(Complex a) { return std::hypot(a.x, a.y); }                                     \
  inline Complex cuCadd##f(Complex a, Complex b) { return make_##Complex(a.x + b.x, a.y + b.y); }         \
  inline Complex cuCsub##f(Complex a, Complex b) { return make_##Complex(a.x - b.x, a.y - b.y); }         \
  inline Complex cuCmul##f(Complex a, Complex b) {                                                        \
    return make_##Complex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);                                  \
  }                                                                                                       \
  inline Complex cuCfma##f(Complex a, Complex b, Complex c) { return cuCadd##f(cuCmul##f(a, b), c); }     \
  inline Complex cuCdiv##f(Complex a, Complex b) {                                                        \
    const Number size = std::fabs(b.x) + std::fabs(b.y);                                                  \
    const Complex over = make_##Complex(a.x / size, a.y / size),                                          \
                  by = make_##Complex(b.x / size, b.y / size);                                            \
    const Complex product = cuCmul##f(over, cuConj##f(by));                                               \
    const Number square = by.x * by.x + by.y * by.y;                                                      \
    return make_##Complex(product.x / square, product.y / square);                                        \
  }
CPU_DEVICE_COMPLEX(cuFloatComplex, float2, float, f)
CPU_DEVICE_COMPLEX(cuDoubleComplex, double2, double, )
#undef CPU_DEVICE_COMPLEX

using cuComplex = cuFloatComplex;
inline cuComplex make_cuComplex(float real, float imaginary) { return make_cuFloatComplex(real, imaginary); }
inline cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex a) {
  return make_cuFloatComplex(static_cast<float>(a.x), static_cast<float>(a.y));
}
inline cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex a) {
  return make_cuDoubleComplex(static_cast<double>(a.x), static_cast<double>(a.y));
}
