/// @file
/// Multiplies the reader's own matrices through a lesson.
#include "common/host/program/multiply_files.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/program/command_line.hpp"
#include "common/host/verify/output_matrix.hpp"
#include "common/host/verify/reference.hpp"
#include "common/host/verify/verdict.hpp"

namespace ladder {
namespace {

std::vector<__nv_bfloat16> all_to_bf16(const std::vector<float>& values) {
  std::vector<__nv_bfloat16> result(values.size());
  for (size_t i = 0; i < values.size(); ++i) result[i] = ladder::to_bf16(values[i]);
  return result;
}

bool all_finite(const std::vector<__nv_bfloat16>& values) {
  return std::all_of(values.begin(), values.end(), [](__nv_bfloat16 value) { return is_finite(value); });
}

double norm(const std::vector<__nv_bfloat16>& values) {
  double squares = 0;
  for (__nv_bfloat16 value : values) squares += double{to_float(value)} * to_float(value);
  return std::sqrt(squares);
}

/// Whether every sum fits into a bf16; if not, infinity is the right answer and there is nothing to compare.
bool representable(const Reference& reference) {
  constexpr double kLargest = 3.38e38;
  return std::all_of(reference.values.begin(), reference.values.end(),
                     [](double value) { return std::abs(value) < kLargest; });
}

std::string dimensions(const NpyMatrix& matrix) {
  return fmt::format("{} x {}", matrix.rows, matrix.columns);
}

}  // namespace

void FileNames::check() const {
  if (std::find(npy_dtypes().begin(), npy_dtypes().end(), dtype) == npy_dtypes().end())
    throw std::invalid_argument("--dtype " + dtype + ": must be one of " + join(npy_dtypes(), ", "));
  if (uint16_is_bf16 && !given())
    throw std::invalid_argument("--bf16-as-uint16: needs --a, --b and --output");
  if (!given()) return;
  const struct {
    const char* argument;
    const std::string& path;
  } all[] = {{"--a", a}, {"--b", b}, {"--output", c}};
  for (const auto& file : all)
    if (file.path.empty())
      throw std::invalid_argument(std::string(file.argument) +
                                  ": is missing; --a, --b and --output belong together");
  for (const auto& [argument, path] : {std::pair<const char*, const std::string&>{"--a", a}, {"--b", b}}) {
    std::error_code none;  // of files that are not there yet
    if (path == c || std::filesystem::equivalent(path, c, none))
      throw std::invalid_argument("--output " + c + ": is the file of " + argument +
                                  ", which it would overwrite; name another");
  }
  check_writable("--output", c);
}

bool multiply_files(const Lesson& lesson, const Settings& settings, const FileNames& files, bool verify) {
  const NpyMatrix a = read_npy("--a", files.a, files.uint16_is_bf16),
                  b = read_npy("--b", files.b, files.uint16_is_bf16);
  if (a.columns != b.rows)
    throw std::invalid_argument("--b '" + files.b + "': is " + dimensions(b) + " and A is " + dimensions(a) +
                                "; B must have as many rows as A has columns");
  const Shape shape = checked_shape("--a, --b", a.rows, b.columns, a.columns);
  check_lesson(lesson, settings, shape);

  const std::vector<__nv_bfloat16> host_a = all_to_bf16(a.values), host_b = all_to_bf16(b.values);
  const DeviceBuffer<__nv_bfloat16> device_a(host_a), device_b(host_b);
  OutputMatrix c(shape.m, shape.n);
  const Gemm gemm{device_a.data(), device_b.data(), c.data(), shape.m, shape.n, shape.k};
  multiply_and_wait(contender_of(lesson, lesson.name, settings), gemm);
  const std::vector<__nv_bfloat16> result = c.download();

  std::string remark = "not verified";
  if (verify && !(all_finite(host_a) && all_finite(host_b))) {
    remark += ": the inputs hold NaN or infinity";
  } else if (verify) {
    const Reference reference = reference_product(gemm, rows_to_compare(shape, affordable_products()));
    if (!representable(reference)) {
      remark += ": sums exceed the range of bf16";
    } else {
      // Where sums cancel, fp32 itself errs: by about 2^-24 of the products' size for each addition.
      const double slack = norm(host_a) * norm(host_b) * 0x1p-20;
      const std::string guard = c.canary_complaint();
      Verdict verdict = compare_close(reference, result, "the given files", slack);
      if (!guard.empty()) verdict.complaint = guard;
      if (!verdict.passed()) {
        std::cerr << lesson.name << ": error: wrong result, nothing is written: " << verdict.complaint
                  << std::endl;
        return false;
      }
      char error[32];
      std::snprintf(error, sizeof error, "%.1e", verdict.rel_error);
      remark = std::string("verified") +
               (verdict.sampled ? fmt::format(" on {} of {} rows", verdict.rows, shape.m) : "") +
               ", relative error " + error;
    }
  }

  NpyMatrix output{a.rows, b.columns, std::vector<float>(result.size())};
  for (size_t i = 0; i < result.size(); ++i) output.values[i] = to_float(result[i]);
  write_npy("--output", files.c, output, files.dtype);
  std::cout << files.c << ": " << dimensions(output) << ", " << files.dtype << "; " << remark << std::endl;
  return true;
}

}  // namespace ladder
