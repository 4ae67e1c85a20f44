/// @file
/// What lessons refuse, in the words that all of them use.
#include "common/host/problem/requirements.hpp"

#include <fmt/core.h>
#include <stdexcept>

#include "common/host/device/device.hpp"

namespace ladder {

void require_multiple(const std::string& name, int value, int factor, const std::string& why) {
  if (value % factor != 0)
    throw std::invalid_argument(
        fmt::format("{} = {}: must be a multiple of {}, {}", name, value, factor, why));
}

std::string usable_core(const Settings& settings) {
  const std::string core = resolve_core(settings.at("core"));
  const std::string reason = why_not({kTuring, {core}}, this_target());
  if (!reason.empty()) throw std::invalid_argument("--core " + settings.at("core") + ": " + reason);
  return core;
}

void require_tma(const Gemm& p, const Settings& settings) {
  const std::string reason = why_not({kHopper, {"wgmma"}}, this_target());
  if (!reason.empty()) throw std::invalid_argument("--core " + settings.at("core") + ": " + reason);
  require_multiple("n", p.n, 8, "because TMA wants rows of whole 16 bytes (02_tiled takes any size)");
  require_multiple("k", p.k, 8, "because TMA wants rows of whole 16 bytes (02_tiled takes any size)");
}

}  // namespace ladder
