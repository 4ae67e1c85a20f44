/// @file
/// The knob `epilogue`.
#include "common/host/problem/epilogues.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

namespace ladder {

Knob epilogue_knob() {
  return {"epilogue", "what is applied to a sum before it is rounded", {"none", "bias_relu", "bias_gelu"}};
}

ReferenceEpilogue reference_epilogue(const Settings& settings) {
  const std::string& epilogue = settings.at("epilogue");
  if (epilogue == "bias_relu")
    return {[](double sum, double bias) { return std::max(sum + bias, 0.0); }, /*exact=*/true};
  if (epilogue == "bias_gelu")
    return {[](double sum, double bias) {
              const double x = sum + bias, sqrt_2_over_pi = std::sqrt(2 / std::acos(-1.0));
              return x / 2 * (1 + std::tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
            },
            /*exact=*/false};
  return {};
}

void require_bias(const Gemm& p, const Settings& settings) {
  if (settings.at("epilogue") != "none") require_bias(p, settings.at("epilogue"));
}

void require_bias(const Gemm& p, const std::string& epilogue) {
  if (!p.bias)
    throw std::invalid_argument("--epilogue " + epilogue + ": needs a bias, which --a and --b do not bring");
  // It is read in pairs of columns.
  if (const auto past = reinterpret_cast<uintptr_t>(p.bias) % sizeof(__nv_bfloat162))
    throw std::invalid_argument(
        fmt::format("bias = {}: begins {} bytes past a multiple of {}: must begin at one",
                    static_cast<const void*>(p.bias), past, sizeof(__nv_bfloat162)));
}

}  // namespace ladder
