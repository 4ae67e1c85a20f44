/// @file
/// cuBLAS on the host: matrices by columns, whole sums in float or double.
#include "common/cpu_device/declarations/cublas_api.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/base/float16.hpp"

struct cublasContext {
  cudaStream_t stream = nullptr;
  bool scalars_on_device = false;
};

namespace cpu_device {
namespace {

size_t bytes_of(cudaDataType type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }
bool is_known(cudaDataType type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

template <class T>
T load(const void* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

double number_at(const void* memory, size_t index, cudaDataType type) {
  const auto* const place = static_cast<const std::byte*>(memory) + index * bytes_of(type);
  switch (type) {
    case CUDA_R_64F:
      return load<double>(place);
    case CUDA_R_32F:
      return static_cast<double>(load<float>(place));
    case CUDA_R_16F:
      return static_cast<double>(float16_to_float(load<uint16_t>(place)));
    case CUDA_R_16BF:
      break;
  }
  return static_cast<double>(bfloat16_to_float(load<uint16_t>(place)));
}

void set_number(void* memory, size_t index, cudaDataType type, double number) {
  auto* const place = static_cast<std::byte*>(memory) + index * bytes_of(type);
  const auto single = static_cast<float>(number);
  uint16_t bits = 0;
  switch (type) {
    case CUDA_R_64F:
      std::memcpy(place, &number, sizeof number);
      return;
    case CUDA_R_32F:
      std::memcpy(place, &single, sizeof single);
      return;
    case CUDA_R_16F:
      bits = float_to_float16(single);
      break;
    case CUDA_R_16BF:
      bits = float_to_bfloat16(single);
      break;
  }
  std::memcpy(place, &bits, sizeof bits);
}

/// A matrix in memory: `rows` by `columns`, or where `transposed` that is what is read of it.
struct Matrix {
  const void* memory;
  cudaDataType type;
  int rows, columns, leading;
  bool transposed;

  bool is_valid() const { return memory && is_known(type) && leading >= stored_rows(); }
  int stored_rows() const { return transposed ? columns : rows; }
  Touch touch(bool write) const {
    const auto columns_stored = static_cast<size_t>(transposed ? rows : columns);
    const size_t numbers =
        (columns_stored - 1) * static_cast<size_t>(leading) + static_cast<size_t>(stored_rows());
    return {static_cast<const std::byte*>(memory), numbers * bytes_of(type), write};
  }
  /// Behind `count` of these.
  Matrix after(long long numbers) const {
    Matrix moved = *this;
    moved.memory = static_cast<const std::byte*>(memory) + numbers * static_cast<long long>(bytes_of(type));
    return moved;
  }
  template <class Number>
  std::vector<Number> by_columns() const {
    std::vector<Number> numbers;
    for (int j = 0; j < columns; ++j) {
      for (int i = 0; i < rows; ++i) {
        const int row = transposed ? j : i, column = transposed ? i : j;
        const auto at = static_cast<size_t>(column) * static_cast<size_t>(leading) + static_cast<size_t>(row);
        numbers.push_back(static_cast<Number>(number_at(memory, at, type)));
      }
    }
    return numbers;
  }
};

template <class Number>
void multiply(const Matrix& a, const Matrix& b, const Matrix& c, double alpha, double beta) {
  const std::vector<Number> left = a.by_columns<Number>(), right = b.by_columns<Number>();
  const auto m = static_cast<size_t>(c.rows), k = static_cast<size_t>(a.columns);
  std::vector<Number> sums(m);
  for (size_t j = 0; j < static_cast<size_t>(c.columns); ++j) {
    sums.assign(m, 0);
    for (size_t step = 0; step < k; ++step) {
      const Number factor = right[j * k + step];
      for (size_t i = 0; i < m; ++i) sums[i] += left[step * m + i] * factor;
    }
    for (size_t i = 0; i < m; ++i) {
      const size_t at = j * static_cast<size_t>(c.leading) + i;
      // What C holds is not read where it does not count: it may be NaN.
      const double before = beta == 0 ? 0 : beta * number_at(c.memory, at, c.type);
      set_number(const_cast<void*>(c.memory), at, c.type, alpha * static_cast<double>(sums[i]) + before);
    }
  }
}

cudaDataType scalar_type(cublasComputeType_t compute) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return CUDA_R_16F;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return CUDA_R_64F;
    default:
      return CUDA_R_32F;
  }
}

cublasStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess             ? CUBLAS_STATUS_SUCCESS
         : error == cudaErrorInvalidValue ? CUBLAS_STATUS_INVALID_VALUE
                                          : CUBLAS_STATUS_EXECUTION_FAILED;
}

/// A scalar of the host is read at the call, one of the device when its turn comes.
struct Scalar {
  Scalar(const cublasContext& context, const void* place, cudaDataType type)
      : place(place), type(type), on_device(context.scalars_on_device) {
    if (!on_device && place) of_host = number_at(place, 0, type);
  }
  double value() const { return on_device ? number_at(place, 0, type) : of_host; }
  const void* place;
  cudaDataType type;
  bool on_device;
  double of_host = 0;
};

struct Strides {
  long long a = 0, b = 0, c = 0;
};

cublasStatus_t multiply_all(const char* call, cublasHandle_t handle, Matrix a, Matrix b, Matrix c,
                            const void* alpha, const void* beta, cudaDataType scalars, Strides strides,
                            int count) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (c.rows < 0 || c.columns < 0 || a.columns < 0 || count < 0 || !alpha || !beta)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (!c.rows || !c.columns || !count) return CUBLAS_STATUS_SUCCESS;
  if (!a.is_valid() || !b.is_valid() || !c.is_valid()) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<Touch> touches;
  for (int i = 0; i < count; ++i) {
    if (a.columns) {
      touches.push_back(a.after(i * strides.a).touch(false));
      touches.push_back(b.after(i * strides.b).touch(false));
    }
    touches.push_back(c.after(i * strides.c).touch(true));
  }
  const Scalar alpha_is(*handle, alpha, scalars), beta_is(*handle, beta, scalars);
  return status_of(call_library(call, handle->stream, std::move(touches), [=] {
    for (int i = 0; i < count; ++i) {
      const auto product = c.type == CUDA_R_64F ? multiply<double> : multiply<float>;
      product(a.after(i * strides.a), b.after(i * strides.b), c.after(i * strides.c), alpha_is.value(),
              beta_is.value());
    }
  }));
}

bool transposes(cublasOperation_t operation) { return operation != CUBLAS_OP_N; }

size_t place_of(int i, int count, int step) {
  return static_cast<size_t>(step < 0 ? (count - 1 - i) * -step : i * step);
}
template <class T>
Touch touch_of(const T* vector, int count, int step, bool write) {
  return {reinterpret_cast<const std::byte*>(vector),
          (static_cast<size_t>(count - 1) * static_cast<size_t>(std::abs(step)) + 1) * sizeof(T), write};
}

template <class T>
cublasStatus_t multiply_vector(const char* call, cublasHandle_t handle, cublasOperation_t op, int m, int n,
                               const T* alpha, const T* a, cudaDataType type, int lda, const T* x, int x_step,
                               const T* beta, T* y, int y_step) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || !alpha || !beta || !x_step || !y_step) return CUBLAS_STATUS_INVALID_VALUE;
  if (!m || !n) return CUBLAS_STATUS_SUCCESS;
  const bool transposed = transposes(op);
  const int rows = transposed ? n : m, columns = transposed ? m : n;
  const Matrix matrix{a, type, rows, columns, lda, transposed};
  if (!matrix.is_valid() || !x || !y) return CUBLAS_STATUS_INVALID_VALUE;
  const Scalar alpha_is(*handle, alpha, type), beta_is(*handle, beta, type);
  return status_of(call_library(
      call, handle->stream,
      {matrix.touch(false), touch_of(x, columns, x_step, false), touch_of(y, rows, y_step, true)}, [=] {
        const std::vector<T> numbers = matrix.by_columns<T>();
        for (int i = 0; i < rows; ++i) {
          T sum = 0;
          for (int j = 0; j < columns; ++j)
            sum += numbers[static_cast<size_t>(j) * static_cast<size_t>(rows) + static_cast<size_t>(i)] *
                   x[place_of(j, columns, x_step)];
          T& to = y[place_of(i, rows, y_step)];
          const auto scale = static_cast<T>(beta_is.value());
          to = static_cast<T>(alpha_is.value()) * sum + (scale == 0 ? 0 : scale * to);
        }
      }));
}

}  // namespace
}  // namespace cpu_device

using namespace cpu_device;

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}
const char* cublasGetStatusString(cublasStatus_t status) { return cublasGetStatusName(status); }

size_t cublasGetCudartVersion() { return CUDART_VERSION; }
cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  *stream = handle->stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t) {
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->scalars_on_device = mode == CUBLAS_POINTER_MODE_DEVICE;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, size_t) {
  return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t a_op,
                                          cublasOperation_t b_op, int m, int n, int k, const void* alpha,
                                          const void* a, cudaDataType a_type, int lda, long long a_stride,
                                          const void* b, cudaDataType b_type, int ldb, long long b_stride,
                                          const void* beta, void* c, cudaDataType c_type, int ldc,
                                          long long c_stride, int count, cublasComputeType_t compute,
                                          cublasGemmAlgo_t) {
  return multiply_all("cublasGemmEx", handle, {a, a_type, m, k, lda, transposes(a_op)},
                      {b, b_type, k, n, ldb, transposes(b_op)}, {c, c_type, m, n, ldc, false}, alpha, beta,
                      scalar_type(compute), {a_stride, b_stride, c_stride}, count);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                            const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute,
                            cublasGemmAlgo_t algo) {
  return cublasGemmStridedBatchedEx(handle, a_op, b_op, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0,
                                    beta, c, c_type, ldc, 0, 1, compute, algo);
}
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                            const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, cudaDataType compute, cublasGemmAlgo_t algo) {
  const cublasComputeType_t type = compute == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
                                   : compute == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                                           : CUBLAS_COMPUTE_32F;
  return cublasGemmEx(handle, a_op, b_op, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type,
                      ldc, type, algo);
}
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                           int n, int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                           const float* beta, float* c, int ldc) {
  return cublasGemmEx(handle, a_op, b_op, m, n, k, alpha, a, CUDA_R_32F, lda, b, CUDA_R_32F, ldb, beta, c,
                      CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                           int n, int k, const double* alpha, const double* a, int lda, const double* b,
                           int ldb, const double* beta, double* c, int ldc) {
  return cublasGemmEx(handle, a_op, b_op, m, n, k, alpha, a, CUDA_R_64F, lda, b, CUDA_R_64F, ldb, beta, c,
                      CUDA_R_64F, ldc, CUBLAS_COMPUTE_64F, CUBLAS_GEMM_DEFAULT);
}
cublasStatus_t cublasHgemm(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                           int n, int k, const __half* alpha, const __half* a, int lda, const __half* b,
                           int ldb, const __half* beta, __half* c, int ldc) {
  return cublasGemmEx(handle, a_op, b_op, m, n, k, alpha, a, CUDA_R_16F, lda, b, CUDA_R_16F, ldb, beta, c,
                      CUDA_R_16F, ldc, CUBLAS_COMPUTE_16F, CUBLAS_GEMM_DEFAULT);
}
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t a_op,
                                         cublasOperation_t b_op, int m, int n, int k, const float* alpha,
                                         const float* a, int lda, long long a_stride, const float* b, int ldb,
                                         long long b_stride, const float* beta, float* c, int ldc,
                                         long long c_stride, int count) {
  return cublasGemmStridedBatchedEx(handle, a_op, b_op, m, n, k, alpha, a, CUDA_R_32F, lda, a_stride, b,
                                    CUDA_R_32F, ldb, b_stride, beta, c, CUDA_R_32F, ldc, c_stride, count,
                                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

cublasStatus_t cublasSgemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const float* alpha,
                           const float* a, int lda, const float* x, int x_step, const float* beta, float* y,
                           int y_step) {
  return multiply_vector("cublasSgemv", handle, op, m, n, alpha, a, CUDA_R_32F, lda, x, x_step, beta, y,
                         y_step);
}
cublasStatus_t cublasDgemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const double* alpha,
                           const double* a, int lda, const double* x, int x_step, const double* beta,
                           double* y, int y_step) {
  return multiply_vector("cublasDgemv", handle, op, m, n, alpha, a, CUDA_R_64F, lda, x, x_step, beta, y,
                         y_step);
}

cublasStatus_t cublasSgeam(cublasHandle_t handle, cublasOperation_t a_op, cublasOperation_t b_op, int m,
                           int n, const float* alpha, const float* a, int lda, const float* beta,
                           const float* b, int ldb, float* c, int ldc) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
  if (!m || !n) return CUBLAS_STATUS_SUCCESS;
  const Scalar alpha_is(*handle, alpha, CUDA_R_32F), beta_is(*handle, beta, CUDA_R_32F);
  const Matrix left{a, CUDA_R_32F, m, n, lda, transposes(a_op)},
      right{b, CUDA_R_32F, m, n, ldb, transposes(b_op)}, to{c, CUDA_R_32F, m, n, ldc, false};
  // A matrix whose factor is zero may be missing.
  const bool has_left = a || handle->scalars_on_device || alpha_is.value() != 0;
  const bool has_right = b || handle->scalars_on_device || beta_is.value() != 0;
  if ((has_left && !left.is_valid()) || (has_right && !right.is_valid()) || !to.is_valid())
    return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<Touch> touches{to.touch(true)};
  if (has_left) touches.push_back(left.touch(false));
  if (has_right) touches.push_back(right.touch(false));
  return status_of(call_library("cublasSgeam", handle->stream, std::move(touches), [=] {
    const double factors[] = {alpha_is.value(), beta_is.value()};
    std::vector<float> sums(static_cast<size_t>(m) * static_cast<size_t>(n));
    for (const int side : {0, 1}) {
      if (factors[side] == 0) continue;
      const std::vector<float> numbers = (side ? right : left).by_columns<float>();
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(factors[side]) * numbers[i];
    }
    for (size_t i = 0; i < sums.size(); ++i)
      c[i / static_cast<size_t>(m) * static_cast<size_t>(ldc) + i % static_cast<size_t>(m)] = sums[i];
  }));
}

cublasStatus_t cublasScopy(cublasHandle_t handle, int n, const float* x, int x_step, float* y, int y_step) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!x || !y) return CUBLAS_STATUS_INVALID_VALUE;
  return status_of(call_library("cublasScopy", handle->stream,
                                {touch_of(x, n, x_step, false), touch_of(y, n, y_step, true)}, [=] {
                                  for (int i = 0; i < n; ++i)
                                    y[place_of(i, n, y_step)] = x[place_of(i, n, x_step)];
                                }));
}

cublasStatus_t cublasSaxpy(cublasHandle_t handle, int n, const float* alpha, const float* x, int x_step,
                           float* y, int y_step) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!alpha || !x || !y) return CUBLAS_STATUS_INVALID_VALUE;
  const Scalar alpha_is(*handle, alpha, CUDA_R_32F);
  return status_of(call_library(
      "cublasSaxpy", handle->stream, {touch_of(x, n, x_step, false), touch_of(y, n, y_step, true)}, [=] {
        for (int i = 0; i < n; ++i)
          y[place_of(i, n, y_step)] += static_cast<float>(alpha_is.value()) * x[place_of(i, n, x_step)];
      }));
}

cublasStatus_t cublasSscal(cublasHandle_t handle, int n, const float* alpha, float* x, int x_step) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (n <= 0) return CUBLAS_STATUS_SUCCESS;
  if (!alpha || !x) return CUBLAS_STATUS_INVALID_VALUE;
  const Scalar alpha_is(*handle, alpha, CUDA_R_32F);
  return status_of(call_library("cublasSscal", handle->stream, {touch_of(x, n, x_step, true)}, [=] {
    for (int i = 0; i < n; ++i) x[place_of(i, n, x_step)] *= static_cast<float>(alpha_is.value());
  }));
}

cublasStatus_t cublasSdot(cublasHandle_t handle, int n, const float* x, int x_step, const float* y,
                          int y_step, float* result) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!result || (n > 0 && (!x || !y))) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<Touch> touches;
  if (n > 0) touches = {touch_of(x, n, x_step, false), touch_of(y, n, y_step, false)};
  if (handle->scalars_on_device) touches.push_back(touch_of(result, 1, 1, true));
  return status_of(call_library(
      "cublasSdot", handle->stream, std::move(touches),
      [=] {
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += x[place_of(i, n, x_step)] * y[place_of(i, n, y_step)];
        *result = sum;
      },
      /*waits=*/!handle->scalars_on_device));
}

cublasStatus_t cublasSnrm2(cublasHandle_t handle, int n, const float* x, int x_step, float* result) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!result || (n > 0 && !x)) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<Touch> touches;
  if (n > 0) touches = {touch_of(x, n, x_step, false)};
  if (handle->scalars_on_device) touches.push_back(touch_of(result, 1, 1, true));
  return status_of(call_library(
      "cublasSnrm2", handle->stream, std::move(touches),
      [=] {
        double sum = 0;
        for (int i = 0; i < n; ++i) {
          const auto number = static_cast<double>(x[place_of(i, n, x_step)]);
          sum += number * number;
        }
        *result = static_cast<float>(std::sqrt(sum));
      },
      /*waits=*/!handle->scalars_on_device));
}

// --- cublasLt ---------------------------------------------------------------------------------------------

struct cublasLtMatmulDescOpaque_t {
  cudaDataType scalars;
  cublasOperation_t a_op = CUBLAS_OP_N, b_op = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
};
struct cublasLtMatrixLayoutOpaque_t {
  cudaDataType type;
  int rows, columns, leading;
};
struct cublasLtMatmulPreferenceOpaque_t {};

namespace {

template <class Part>
cublasStatus_t set_part(Part& part, const void* value, size_t bytes) {
  if (bytes != sizeof part) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&part, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t destroy(T* object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

double activated(double x, cublasLtEpilogue_t epilogue) {
  if (epilogue & CUBLASLT_EPILOGUE_RELU) return x < 0 ? 0 : x;
  if (!(epilogue & CUBLASLT_EPILOGUE_GELU)) return x;
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return cublasCreate(handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return cublasDestroy(handle); }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t,
                                        cudaDataType_t scalars) {
  *description = new cublasLtMatmulDescOpaque_t{scalars};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set_part(description->a_op, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set_part(description->b_op, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set_part(description->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: {
      const cublasStatus_t status = set_part(description->epilogue, value, bytes);
      const bool is_known =
          !(description->epilogue &
            ~(CUBLASLT_EPILOGUE_DEFAULT | CUBLASLT_EPILOGUE_RELU_BIAS | CUBLASLT_EPILOGUE_GELU_BIAS));
      return is_known ? status : CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) { return destroy(description); }
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                          unsigned long long rows, unsigned long long columns,
                                          long long leading) {
  *layout = new cublasLtMatrixLayoutOpaque_t{type, static_cast<int>(rows), static_cast<int>(columns),
                                             static_cast<int>(leading)};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy(preference);
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (wanted < 1 || !results || !found) return CUBLAS_STATUS_INVALID_VALUE;
  *results = {};
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  if (!handle) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!description || !alpha || !beta || !d || (*static_cast<const float*>(beta) != 0 && c != d))
    return c != d ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_INVALID_VALUE;
  const auto matrix = [](const void* memory, const cublasLtMatrixLayoutOpaque_t& layout, bool transposed) {
    const int rows = transposed ? layout.columns : layout.rows;
    const int columns = transposed ? layout.rows : layout.columns;
    return Matrix{memory, layout.type, rows, columns, layout.leading, transposed};
  };
  const Matrix to = matrix(d, *d_layout, false);
  static_cast<void>(c_layout);
  handle->stream = stream;
  const cublasStatus_t status = multiply_all(
      "cublasLtMatmul", handle, matrix(a, *a_layout, transposes(description->a_op)),
      matrix(b, *b_layout, transposes(description->b_op)), to, alpha, beta, description->scalars, {}, 1);
  const auto [scalars, a_op, b_op, epilogue, bias] = *description;
  if (status != CUBLAS_STATUS_SUCCESS || epilogue == CUBLASLT_EPILOGUE_DEFAULT) return status;
  const bool adds = epilogue & CUBLASLT_EPILOGUE_BIAS;
  if (adds && !bias) return CUBLAS_STATUS_INVALID_VALUE;
  std::vector<Touch> touches{to.touch(true)};
  if (adds) touches.push_back(Matrix{bias, to.type, to.rows, 1, to.rows, false}.touch(false));
  return status_of(call_library(
      "cublasLtMatmul", stream, std::move(touches), [to, adds, bias = bias, epilogue = epilogue] {
        for (int j = 0; j < to.columns; ++j) {
          for (int i = 0; i < to.rows; ++i) {
            const auto row = static_cast<size_t>(i);
            const size_t at = static_cast<size_t>(j) * static_cast<size_t>(to.leading) + row;
            const double sum = number_at(to.memory, at, to.type) + (adds ? number_at(bias, row, to.type) : 0);
            set_number(const_cast<void*>(to.memory), at, to.type, activated(sum, epilogue));
          }
        }
      }));
}
