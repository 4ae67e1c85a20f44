/// @file
/// Whatever multiplies matrices and is compared with others: a lesson with its settings, or a library.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "common/host/problem/lesson.hpp"
#include "common/host/problem/shape.hpp"

namespace ladder {

struct Contender {
  std::string lesson;  ///< the lesson's name, or "cublas_gemmex", "cublaslt"
  std::string label;   ///< for people
  std::string core;    ///< "wgmma", "mma_sync", "fma"; "cublas" for libraries
  Settings settings;
  /// Called once for each set of inputs, before any launch with them. May be empty.
  std::function<void(const Gemm&)> prepare;
  std::function<void(const Gemm&, cudaStream_t)> launch;
  /// Ways to the same result, of which `launch` is the first: see with_fastest_candidates(). Empty for most.
  std::vector<std::function<void(const Gemm&, cudaStream_t)>> candidates = {};

  // Of lessons that say so.
  ReferenceEpilogue epilogue = {};
  std::function<Resources()> resources = {};
  std::function<double(const Gemm&)> global_bytes = {};
  std::function<std::string(const Shape&)> choice = {};  ///< see Lesson::choice
  std::string rung = {};                                 ///< see Run::rung
};

/// A lesson with every knob set. @throws std::invalid_argument for settings that it does not have.
Contender contender_of(const Lesson& lesson, const std::string& label, const Settings& chosen);

/// The other ways to the same result that the lesson names for these settings; none for most.
std::vector<Contender> alternatives_to(const Lesson& lesson, const std::string& label,
                                       const Settings& chosen);

/// Prepares, launches and waits. @throws CudaError
void multiply_and_wait(const Contender& contender, const Gemm& gemm);

/// The libraries to compare with, for one shape: cublasGemmEx, and cublasLt with what its heuristics propose
/// as candidates, each with B row-major and with B transposed beforehand. None on the CPU device, and none
/// for several B, which are more than one call.
std::vector<Contender> baselines(const Shape& shape);

/// Adds a library that launches the first of its candidates. Without a candidate it is left out, which a line
/// on stderr says.
void add_library(std::vector<Contender>& contenders, Contender library, const Shape& shape);

}  // namespace ladder
