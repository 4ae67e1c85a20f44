/// @file
/// cuBLAS as a contender.
///
/// Its matrices are column-major. A row-major matrix read column by column is its transpose, and
/// C^T = B^T · A^T, so we pass B first:
///
///     B in memory                                          to cuBLAS  what cuBLAS does
///     row-major [k, n]                                     B^T        takes it as it stands
///     transposed beforehand: row-major [n, k], "K-major"   B          transposes it
#include <cublasLt.h>
#include <cublas_v2.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cuda/cuda_handles.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/host/measure/contender.hpp"
#include "common/host/measure/run.hpp"
#include "common/host/measure/transpose_gpu.hpp"

namespace ladder {
namespace {

void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + " failed: " + cublasGetStatusString(status));
}
#define CUBLAS_CHECK(call) check_cublas((call), #call)

/// B as a baseline wants it.
class OperandB {
 public:
  explicit OperandB(bool transposed) : transposed_(transposed) {}

  Settings settings() const { return {{"b", transposed_ ? "transposed" : "row-major"}}; }
  std::string label() const { return transposed_ ? "B transposed" : "B row-major"; }

  void prepare(const Gemm& gemm) {
    if (!transposed_) return;
    DeviceBuffer<__nv_bfloat16>& copy = copies_[gemm.b];
    if (copy.size() == 0) copy = DeviceBuffer<__nv_bfloat16>(size_t(gemm.k) * gemm.n);
    transpose(gemm.b, gemm.k, gemm.n, copy.data());
  }

  const __nv_bfloat16* data(const Gemm& gemm) const {
    return transposed_ ? copies_.at(gemm.b).data() : gemm.b;
  }
  cublasOperation_t operation() const { return transposed_ ? CUBLAS_OP_T : CUBLAS_OP_N; }
  /// Of B as it lies in memory, in cuBLAS's columns.
  int rows(const Shape& shape) const { return transposed_ ? shape.k : shape.n; }
  int columns(const Shape& shape) const { return transposed_ ? shape.n : shape.k; }

 private:
  bool transposed_;
  std::map<const __nv_bfloat16*, DeviceBuffer<__nv_bfloat16>> copies_;  // by the B that they are copies of
};

/// What cuBLAS recommends for Hopper, and gets by default.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

class CublasGemmEx {
 public:
  CublasGemmEx(const Shape& shape, bool transposed)
      : b(transposed), shape_(shape), workspace_(kWorkspaceBytes) {
    cublasHandle_t handle = nullptr;
    CUBLAS_CHECK(cublasCreate(&handle));
    handle_.reset(handle);
  }

  void launch(const Gemm& gemm, cudaStream_t stream) {
    const float one = 1, zero = 0;
    CUBLAS_CHECK(cublasSetStream(handle_.get(), stream));
    // Setting the stream forgets the workspace. Without one of ours, cuBLAS would allocate inside a captured
    // graph.
    CUBLAS_CHECK(cublasSetWorkspace(handle_.get(), workspace_.data(), kWorkspaceBytes));
    CUBLAS_CHECK(cublasGemmEx(handle_.get(), b.operation(), CUBLAS_OP_N, shape_.n, shape_.m, shape_.k, &one,
                              b.data(gemm), CUDA_R_16BF, b.rows(shape_), gemm.a, CUDA_R_16BF, shape_.k, &zero,
                              gemm.c, CUDA_R_16BF, shape_.n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  }

  OperandB b;

 private:
  Shape shape_;
  DeviceBuffer<char> workspace_;
  std::unique_ptr<cublasContext, CudaDeleter<cublasDestroy>> handle_;
};

/// The algorithms that cublasLt's heuristics propose.
class CublasLt {
 public:
  CublasLt(const Shape& shape, bool transposed) : b(transposed), workspace_(kWorkspaceBytes) {
    cublasLtHandle_t handle = nullptr;
    CUBLAS_CHECK(cublasLtCreate(&handle));
    handle_.reset(handle);

    cublasLtMatmulDesc_t multiplication = nullptr;
    CUBLAS_CHECK(cublasLtMatmulDescCreate(&multiplication, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    multiplication_.reset(multiplication);
    const cublasOperation_t operation = b.operation();
    CUBLAS_CHECK(cublasLtMatmulDescSetAttribute(multiplication, CUBLASLT_MATMUL_DESC_TRANSA, &operation,
                                                sizeof operation));
    first_ = make_layout(b.rows(shape), b.columns(shape));
    second_ = make_layout(shape.k, shape.m);
    result_ = make_layout(shape.n, shape.m);
    propose();
  }

  size_t candidates() const { return candidates_.size(); }

  void launch(size_t candidate, const Gemm& gemm, cudaStream_t stream) {
    const float one = 1, zero = 0;
    CUBLAS_CHECK(cublasLtMatmul(handle_.get(), multiplication_.get(), &one, b.data(gemm), first_.get(),
                                gemm.a, second_.get(), &zero, gemm.c, result_.get(), gemm.c, result_.get(),
                                &candidates_[candidate].algo, workspace_.data(), kWorkspaceBytes, stream));
  }

  OperandB b;

 private:
  static constexpr int kCandidates = 8;
  using Layout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, CudaDeleter<cublasLtMatrixLayoutDestroy>>;

  static Layout make_layout(int rows, int columns) {
    cublasLtMatrixLayout_t layout = nullptr;
    CUBLAS_CHECK(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, rows, columns, rows));
    return Layout(layout);
  }

  void propose() {
    cublasLtMatmulPreference_t preference = nullptr;
    CUBLAS_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, CudaDeleter<cublasLtMatmulPreferenceDestroy>>
        owner(preference);
    CUBLAS_CHECK(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                      &kWorkspaceBytes, sizeof kWorkspaceBytes));
    candidates_.resize(kCandidates);
    int found = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle_.get(), multiplication_.get(), first_.get(), second_.get(), result_.get(), result_.get(),
        preference, kCandidates, candidates_.data(), &found);
    // Without an algorithm for this problem, cublasLt finds none or says so.
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) check_cublas(status, "cublasLtMatmulAlgoGetHeuristic");
    candidates_.resize(found);
  }

  DeviceBuffer<char> workspace_;
  std::unique_ptr<cublasLtContext, CudaDeleter<cublasLtDestroy>> handle_;
  std::unique_ptr<cublasLtMatmulDescOpaque_t, CudaDeleter<cublasLtMatmulDescDestroy>> multiplication_;
  Layout first_, second_, result_;
  std::vector<cublasLtMatmulHeuristicResult_t> candidates_;
};

/// A library without its launch.
template <class Library>
Contender make_baseline(const std::string& name, const std::string& label,
                        const std::shared_ptr<Library>& library) {
  return {name,
          label + ", " + library->b.label(),
          kLibraryCore,
          library->b.settings(),
          [library](const Gemm& gemm) { library->b.prepare(gemm); },
          {}};
}

Contender gemm_ex(const Shape& shape, bool transposed) {
  const auto library = std::make_shared<CublasGemmEx>(shape, transposed);
  Contender contender = make_baseline("cublas_gemmex", "cublasGemmEx", library);
  contender.launch = [library](const Gemm& gemm, cudaStream_t stream) { library->launch(gemm, stream); };
  return contender;
}

Contender lt(const Shape& shape, bool transposed) {
  const auto library = std::make_shared<CublasLt>(shape, transposed);
  Contender contender = make_baseline("cublaslt", "cublasLt, best of 8", library);
  for (size_t i = 0; i < library->candidates(); ++i)
    contender.candidates.push_back(
        [library, i](const Gemm& gemm, cudaStream_t stream) { library->launch(i, gemm, stream); });
  return contender;
}

}  // namespace

std::vector<Contender> baselines(const Shape& shape) {
  std::vector<Contender> result;
  if (shape.b_matrices > 1) return result;
  for (const bool transposed : {false, true}) result.push_back(gemm_ex(shape, transposed));
  for (const bool transposed : {false, true}) add_library(result, lt(shape, transposed), shape);
  return result;
}

}  // namespace ladder
