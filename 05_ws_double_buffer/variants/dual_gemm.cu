/// @file
/// The dual GEMM for the programs: its knobs, its limits, and the separate kernels that it is timed against.
#include "05_ws_double_buffer/variants/dual_gemm.cuh"

#include <fmt/core.h>
#include <cmath>
#include <map>
#include <memory>

#include "05_ws_double_buffer/variants/separate_fold.cuh"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/kernel_resources.hpp"
#include "common/host/device/device.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/problem/requirements.hpp"

namespace lesson05::dual {
namespace {
using ladder::Settings;

/// Calls visit(combine) with the functor that `activation` chooses.
template <class Visit>
void visit_combine(const Settings& settings, const Visit& visit) {
  if (settings.at("activation") == "silu") visit(SiluTimes());
  if (settings.at("activation") == "identity") visit(Times());
}

int group_of(const Settings& settings) { return std::stoi(settings.at("group")); }

void check(const Gemm& p, const Settings& settings) { ladder::require_tma(p, settings); }

void launch(const Gemm& p, const Settings& settings, cudaStream_t stream) {
  check(p, settings);
  visit_combine(settings, [&](const auto& combine) { launch_gemm(p, group_of(settings), combine, stream); });
}

ladder::Resources resources(const Settings& settings) {
  ladder::Resources result;
  visit_combine(settings, [&]<class Combine>(const Combine&) {
    result = ladder::kernel_resources(gemm<Combine>, Shape::kThreads, sizeof(SharedStorage),
                                      fmt::format("{}x{}", kTile.m, kTile.n));
  });
  return result;
}

ladder::ReferenceEpilogue reference_epilogue(const Settings& settings) {
  if (settings.at("activation") == "identity")
    return {[](double gate, double up) { return gate * up; }, /*exact=*/true};
  return {[](double gate, double up) { return gate / (1 + std::exp(-gate)) * up; }, /*exact=*/false};
}

/// The same where both sums are rounded before they are combined.
ladder::ReferenceEpilogue reference_of_separate_kernels(const Settings& settings) {
  return {reference_epilogue(settings).apply, /*exact=*/false, /*roundings=*/3};
}

/// A, both B and C cross once.
double fused_bytes(const Gemm& p) {
  const double elements = double(p.m) * p.k + 2.0 * p.k * p.n + double(p.m) * p.n;
  return elements * sizeof(__nv_bfloat16);
}

/// Two sums for each element of C are written and read again besides.
double bytes_of_separate_kernels(const Gemm& p, int reads_of_a) {
  const double elements = (reads_of_a - 1.0) * p.m * p.k + 4.0 * p.m * p.n;
  return fused_bytes(p) + elements * sizeof(__nv_bfloat16);
}

/// Both sums of every element, between the kernels that make them and the one that reads them. It grows with
/// the first launch of a shape, so that none is allocated while launches are captured into a graph.
class Sums {
 public:
  __nv_bfloat16* of(const Gemm& p) {
    const size_t size = 2 * size_t(p.m) * p.n;
    if (buffer_.size() < size) {
      buffer_ = ladder::DeviceBuffer<__nv_bfloat16>(size);
      // NaN, so that a sum that is missing shows; and before any stream writes one.
      CUDA_CHECK(cudaMemset(buffer_.data(), 0xff, size * sizeof(__nv_bfloat16)));
      CUDA_CHECK(cudaDeviceSynchronize());
    }
    return buffer_.data();
  }

 private:
  ladder::DeviceBuffer<__nv_bfloat16> buffer_;
};

/// The same kernel without a fold, twice, which loads A twice, then a kernel that folds the sums.
ladder::Alternative two_products(const Settings& settings) {
  const auto sums = std::make_shared<Sums>();
  return {"two GEMMs + kernel",
          [settings, sums](const Gemm& p, cudaStream_t stream) {
            check(p, settings);
            __nv_bfloat16 *const gate = sums->of(p), *const up = gate + size_t(p.m) * p.n;
            const __nv_bfloat16* const b2 = p.b + size_t(p.k) * p.n;
            const auto multiply = [&](const __nv_bfloat16* b, __nv_bfloat16* sum) {
              ratios::launch_gemm<Shape>({p.a, b, sum, p.m, p.n, p.k}, group_of(settings), ladder::Identity(),
                                         stream);
            };
            multiply(p.b, gate);
            multiply(b2, up);
            visit_combine(settings,
                          [&](const auto& combine) { launch_fold(gate, up, p.n, p, combine, stream); });
          },
          reference_of_separate_kernels(settings),
          [](const Gemm& p) { return bytes_of_separate_kernels(p, /*reads_of_a=*/2); }};
}

/// One product of the library with [B1 B2], laid side by side beforehand, as frameworks store such weights.
class WideProduct {
 public:
  /// @param layout of B, "row-major" or "transposed"
  explicit WideProduct(const std::string& layout) : layout_(layout) {}

  void prepare(const Gemm& p) {
    const ladder::Shape shape{p.m, 2 * p.n, p.k};
    if (shape != shape_) choose_library(shape);
    auto& wide_b = wide_b_[p.b];
    const size_t size = size_t(p.k) * 2 * p.n, row = p.n * sizeof(__nv_bfloat16);
    if (wide_b.size() != size) wide_b = ladder::DeviceBuffer<__nv_bfloat16>(size);
    for (int which = 0; which < 2; ++which)
      CUDA_CHECK(cudaMemcpy2D(wide_b.data() + which * p.n, 2 * row, p.b + which * (size_t(p.k) * p.n), row,
                              row, p.k, cudaMemcpyDeviceToDevice));
    library_.prepare(wide(p));
    CUDA_CHECK(cudaDeviceSynchronize());  // launches may be on a stream that does not wait for copies
  }

  /// @returns the sums, [m, 2n]
  const __nv_bfloat16* launch(const Gemm& p, cudaStream_t stream) {
    library_.launch(wide(p), stream);
    return sums_.of(p);
  }

 private:
  void choose_library(const ladder::Shape& shape) {
    shape_ = shape;
    wide_b_.clear();
    for (const ladder::Contender& library : ladder::baselines(shape))
      if (library.lesson == "cublaslt" && library.settings.at("b") == layout_) library_ = library;
  }

  Gemm wide(const Gemm& p) { return {p.a, wide_b_.at(p.b).data(), sums_.of(p), p.m, 2 * p.n, p.k}; }

  std::string layout_;
  ladder::Shape shape_;
  ladder::Contender library_;
  std::map<const __nv_bfloat16*, ladder::DeviceBuffer<__nv_bfloat16>> wide_b_;  // by the B1 they are made of
  Sums sums_;
};

/// The library's product, then the kernel that folds the sums. Only in the GPU build.
ladder::Alternative wide_product(const std::string& label, const std::string& layout,
                                 const Settings& settings) {
  const auto product = std::make_shared<WideProduct>(layout);
  return {label,
          [settings, product](const Gemm& p, cudaStream_t stream) {
            const __nv_bfloat16* const sums = product->launch(p, stream);
            visit_combine(settings, [&](const auto& combine) {
              launch_fold(sums, sums + p.n, 2 * p.n, p, combine, stream);
            });
          },
          reference_of_separate_kernels(settings),
          [](const Gemm& p) { return bytes_of_separate_kernels(p, /*reads_of_a=*/1); },
          [product](const Gemm& p) { product->prepare(p); }};
}

std::vector<ladder::Alternative> alternatives(const Settings& settings) {
  std::vector<ladder::Alternative> result = {two_products(settings)};
  if (!ladder::on_cpu_device()) {
    result.push_back(wide_product("cublasLt + kernel", "row-major", settings));
    result.push_back(wide_product("cublasLt + kernel, B^T", "transposed", settings));
  }
  return result;
}

}  // namespace

const ladder::Lesson& lesson() {
  static const ladder::Lesson lesson = {
      .name = "05_ws_double_buffer",
      .idea = "Two products of one A, silu(A B1) * (A B2), in one kernel.",
      .knobs = {ladder::wgmma_knob(),
                {"experiment", "tells these results from those of the lesson itself", {"dual_gemm"}},
                {"activation", "of the first product; without one the result is exact", {"silu", "identity"}},
                ladder::group_knob()},
      .rungs = {},
      .minimum_architecture = ladder::kHopper,
      .b_matrices = 2,
      .program = "05_dual_gemm",
      .check = check,
      .launch = launch,
      .resources = resources,
      .epilogue = reference_epilogue,
      .global_bytes = [](const Gemm& p, const Settings&) { return fused_bytes(p); },
      .alternatives = alternatives};
  return lesson;
}

}  // namespace lesson05::dual
