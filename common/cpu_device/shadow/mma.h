/// @file
/// Shadow of <mma.h>: nvcuda::wmma. Which lane holds which element is not specified by CUDA; here slot i of
/// lane l is element 32 i + l of the tile, counted by rows. Fragments of half hold each element twice, as
/// there.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/kernel/engine.hpp"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

namespace details {

template <class T>
struct Storage {
  using Type = T;
};
template <>
struct Storage<precision::tf32> {
  using Type = float;
};

template <class Use, int m, int n, int k, class T>
struct Tile {
  static constexpr bool kIsSum = std::is_same_v<Use, accumulator>;
  static constexpr int kRows = std::is_same_v<Use, matrix_b> ? k : m;
  static constexpr int kColumns = std::is_same_v<Use, matrix_a> ? k : n;
  static constexpr int kElements = kRows * kColumns;
  static constexpr int kSlots = std::is_same_v<T, __half> && !kIsSum ? 16 : kElements / 32;
  static constexpr bool kIsLarge =
      (m == 16 && n == 16 && k == 16) || (m == 32 && n == 8 && k == 16) || (m == 8 && n == 32 && k == 16);
  static constexpr bool kIsTf32 =
      m == 16 && n == 16 && k == 8 &&
      (std::is_same_v<T, precision::tf32> || (kIsSum && std::is_same_v<T, float>));
  static constexpr bool kIsDouble = m == 8 && n == 8 && k == 4 && std::is_same_v<T, double>;
  static constexpr bool kIsOfLarge =
      kIsSum ? std::is_same_v<T, float> || std::is_same_v<T, __half> || std::is_same_v<T, int>
             : std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> ||
                   std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char>;
  static_assert(
      (kIsLarge && kIsOfLarge) || kIsTf32 || kIsDouble,
      "the CPU device has fragments of 16x16x16, 32x8x16 and 8x32x16 (half, bf16, int8), 16x16x8 (tf32) "
      "and 8x8x4 (double)");
};

inline unsigned lane() { return cpu_device::current_thread_ids->rank % 32; }

/// All lanes come here; whoever looks at memory then does it alone, as one lane of an instruction.
inline void meet(const char* what, cpu_device::Location where) {
  cpu_device::execute_as_warp(
      what, nullptr, [](void* const(&)[32]) {}, where);
}

/// Calls `function(slot, row, column)` for what this lane holds.
template <class Tile, class Function>
[[gnu::always_inline]] inline void for_each_slot(const Function& function) {
  for (int i = 0; i < Tile::kSlots; ++i) {
    const int element = (32 * i + static_cast<int>(lane())) % Tile::kElements;
    function(i, element / Tile::kColumns, element % Tile::kColumns);
  }
}

}  // namespace details

template <class Use, int m, int n, int k, class T, class Layout = void>
class fragment {
 public:
  using element_type = typename details::Storage<T>::Type;
  using storage_element_type = element_type;
  using Tile = details::Tile<Use, m, n, k, T>;
  static constexpr int num_elements = Tile::kSlots;
  static constexpr int num_storage_elements = num_elements;
  element_type x[Tile::kSlots];
};

template <class Use, int m, int n, int k, class T, class Layout>
void fill_fragment(fragment<Use, m, n, k, T, Layout>& fragment,
                   const std::type_identity_t<typename details::Storage<T>::Type>& value, CPU_DEVICE_WHERE) {
  details::meet("wmma::fill_fragment", where);
  for (auto& x : fragment.x) x = value;
}

template <class Use, int m, int n, int k, class T, class Layout>
[[gnu::always_inline]] inline void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& fragment,
                                                    const typename details::Storage<T>::Type* memory,
                                                    unsigned leading, CPU_DEVICE_WHERE) {
  details::meet("wmma::load_matrix_sync", where);
  details::for_each_slot<details::Tile<Use, m, n, k, T>>([&](int i, int row, int column) {
    constexpr bool kByRows = std::is_same_v<Layout, row_major>;
    fragment.x[i] = memory[static_cast<size_t>(kByRows ? row : column) * leading +
                           static_cast<size_t>(kByRows ? column : row)];
  });
}
template <int m, int n, int k, class T>
[[gnu::always_inline]] inline void load_matrix_sync(fragment<accumulator, m, n, k, T>& fragment,
                                                    const T* memory, unsigned leading, layout_t layout,
                                                    CPU_DEVICE_WHERE) {
  details::meet("wmma::load_matrix_sync", where);
  details::for_each_slot<details::Tile<accumulator, m, n, k, T>>([&](int i, int row, int column) {
    const bool by_rows = layout == mem_row_major;
    fragment.x[i] = memory[static_cast<size_t>(by_rows ? row : column) * leading +
                           static_cast<size_t>(by_rows ? column : row)];
  });
}
template <int m, int n, int k, class T>
[[gnu::always_inline]] inline void store_matrix_sync(T* memory,
                                                     const fragment<accumulator, m, n, k, T>& fragment,
                                                     unsigned leading, layout_t layout, CPU_DEVICE_WHERE) {
  details::meet("wmma::store_matrix_sync", where);
  details::for_each_slot<details::Tile<accumulator, m, n, k, T>>([&](int i, int row, int column) {
    const bool by_rows = layout == mem_row_major;
    memory[static_cast<size_t>(by_rows ? row : column) * leading +
           static_cast<size_t>(by_rows ? column : row)] = fragment.x[i];
  });
}

/// What tensor cores read of a float.
inline float __float_to_tf32(float value) {
  unsigned bits = __float_as_uint(value);
  if ((bits & 0x7f800000) != 0x7f800000) bits = (bits + 0x1000) & 0xffffe000;
  return __uint_as_float(bits);
}

namespace details {

/// The numbers that a product is made of: sums are of float, int or double.
template <class T>
auto number(const T& x) {
  if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>) {
    return static_cast<float>(x);
  } else if constexpr (sizeof(T) == 1) {
    return static_cast<int>(x);
  } else {
    return x;
  }
}

}  // namespace details

/// d = a b + c.
template <int m, int n, int k, class A, class B, class LayoutA, class LayoutB, class D, class C>
void mma_sync(fragment<accumulator, m, n, k, D>& d, const fragment<matrix_a, m, n, k, A, LayoutA>& a,
              const fragment<matrix_b, m, n, k, B, LayoutB>& b, const fragment<accumulator, m, n, k, C>& c,
              CPU_DEVICE_WHERE) {
  static_assert(std::is_same_v<A, B>, "A and B have elements of one type");
  using Sum = decltype(details::number(c.x[0]));
  for (const C& x : c.x) {
    if (!std::is_integral_v<C> && cpu_device::is_unwritten_local(&x, sizeof x))
      cpu_device::report_misuse(
          "wmma::mma_sync: the product is added to accumulators that were never written: clear them before "
          "(wmma::fill_fragment)",
          where);
  }
  struct Lane {
    fragment<accumulator, m, n, k, D>* d;
    const fragment<matrix_a, m, n, k, A, LayoutA>* a;
    const fragment<matrix_b, m, n, k, B, LayoutB>* b;
    const fragment<accumulator, m, n, k, C>* c;
  } own{&d, &a, &b, &c};
  cpu_device::execute_as_warp(
      "wmma::mma_sync", &own,
      [](void* const(&lanes)[32]) {
        const auto lane = [&](int i) -> const Lane& { return *static_cast<const Lane*>(lanes[i]); };
        Sum left[m * k], right[k * n], sum[m * n];
        for (int i = 0; i < m * k; ++i)
          left[i] = static_cast<Sum>(details::number(lane(i % 32).a->x[i / 32]));
        for (int i = 0; i < k * n; ++i)
          right[i] = static_cast<Sum>(details::number(lane(i % 32).b->x[i / 32]));
        for (int i = 0; i < m * n; ++i) sum[i] = details::number(lane(i % 32).c->x[i / 32]);
        for (int row = 0; row < m; ++row) {
          for (int step = 0; step < k; ++step) {
            for (int column = 0; column < n; ++column)
              sum[row * n + column] += left[row * k + step] * right[step * n + column];
          }
        }
        for (int i = 0; i < m * n; ++i) lane(i % 32).d->x[i / 32] = static_cast<D>(sum[i]);
      },
      where, uint64_t{2} * m * n * k);
}

}  // namespace nvcuda::wmma
