/// @file
/// Part of the shadow of <cuda_runtime.h>: the overloads of min and max that nvcc declares for kernels.
#pragma once
#include <cmath>

#define CPU_DEVICE_MIN_MAX(Result, A, B)                                             \
  inline Result min(A a, B b) {                                                      \
    return static_cast<Result>(a) < static_cast<Result>(b) ? static_cast<Result>(a)  \
                                                           : static_cast<Result>(b); \
  }                                                                                  \
  inline Result max(A a, B b) {                                                      \
    return static_cast<Result>(a) > static_cast<Result>(b) ? static_cast<Result>(a)  \
                                                           : static_cast<Result>(b); \
  }

CPU_DEVICE_MIN_MAX(int, int, int)
CPU_DEVICE_MIN_MAX(unsigned, unsigned, unsigned)
CPU_DEVICE_MIN_MAX(unsigned, int, unsigned)
CPU_DEVICE_MIN_MAX(unsigned, unsigned, int)
CPU_DEVICE_MIN_MAX(long, long, long)
CPU_DEVICE_MIN_MAX(unsigned long, unsigned long, unsigned long)
CPU_DEVICE_MIN_MAX(unsigned long, long, unsigned long)
CPU_DEVICE_MIN_MAX(unsigned long, unsigned long, long)
CPU_DEVICE_MIN_MAX(long long, long long, long long)
CPU_DEVICE_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
CPU_DEVICE_MIN_MAX(unsigned long long, long long, unsigned long long)
CPU_DEVICE_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef CPU_DEVICE_MIN_MAX

// Of a number and a NaN these return the number, as on the GPU.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
inline double min(float a, double b) { return std::fmin(static_cast<double>(a), b); }
inline double max(float a, double b) { return std::fmax(static_cast<double>(a), b); }
inline double min(double a, float b) { return std::fmin(a, static_cast<double>(b)); }
inline double max(double a, float b) { return std::fmax(a, static_cast<double>(b)); }

inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
