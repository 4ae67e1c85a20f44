/// @file
/// What lessons refuse, in the words that all of them use.
#include "common/host/problem/requirements.hpp"

#include <fmt/core.h>
#include <cstdint>
#include <stdexcept>

#include "common/host/device/device.hpp"

namespace ladder {

void require_multiple(const std::string& name, int value, int factor, const std::string& why) {
  if (value % factor != 0)
    throw std::invalid_argument(
        fmt::format("{} = {}: must be a multiple of {}, {}", name, value, factor, why));
}

void require_grid_rows(const std::string& name, int value, int rows) {
  constexpr int kMostGridRows = 65535;
  if (value > kMostGridRows * rows)
    throw std::invalid_argument(
        fmt::format("{} = {}: must be at most {}, because a grid has at most {} rows of blocks", name, value,
                    kMostGridRows * rows, kMostGridRows));
}

void require_aligned_matrices(const Gemm& p) {
  static constexpr uintptr_t kBytes = 16;
  const auto require = [](const char* name, const void* address) {
    if (reinterpret_cast<uintptr_t>(address) % kBytes != 0)
      throw std::invalid_argument(
          fmt::format("{} = {}: must start at a multiple of {} bytes, because chunks of {} bytes are copied",
                      name, address, kBytes, kBytes));
  };
  require("a", p.a);
  require("b", p.b);
  require("c", p.c);
}

std::string usable_core(const Settings& settings) {
  const std::string core = resolve_core(settings.at("core"));
  const std::string reason = why_not({kTuring, {core}}, this_target());
  if (!reason.empty()) throw std::invalid_argument("--core " + settings.at("core") + ": " + reason);
  return core;
}

void require_tma(const Settings& settings) {
  const std::string reason = why_not({kHopper, {"wgmma"}}, this_target());
  if (!reason.empty()) throw std::invalid_argument("--core " + settings.at("core") + ": " + reason);
}

void require_tma_rows(const Gemm& p) {
  require_multiple("n", p.n, 8, "because TMA wants rows of whole 16 bytes (01_naive takes any size)");
  require_multiple("k", p.k, 8, "because TMA wants rows of whole 16 bytes (01_naive takes any size)");
  require_aligned_matrices(p);
}

void require_tma(const Gemm& p, const Settings& settings) {
  require_tma(settings);
  require_tma_rows(p);
}

void require_k_steps(const Gemm& p, int step_k, int blocks) {
  if (p.k <= (blocks - 1) * step_k)
    throw std::invalid_argument(
        fmt::format("k = {}: must be more than {}, so that each of {} parts of K has a step", p.k,
                    (blocks - 1) * step_k, blocks));
}

std::string usable_loader(const Settings& settings) {
  const std::string core = usable_core(settings), &loader = settings.at("loader");
  const bool has_tma = this_target().code.architecture >= kHopper;
  if (loader == "auto") return has_tma ? "tma" : "cp_async";
  if (loader == "cp_async" && core == "wgmma")
    throw std::invalid_argument("--loader cp_async: brings tiles for --core mma_sync, not for wgmma");
  if (loader == "tma" && !has_tma)
    throw std::invalid_argument(
        "--loader tma: needs code for sm_90 or later, which alone has TMA; this runs code for sm_" +
        std::to_string(this_target().code.architecture));
  return loader;
}

void require_chunks(const Gemm& p) {
  const std::string why = "because copies move 16 bytes at a time (01_naive takes any size)";
  require_multiple("n", p.n, 8, why);
  require_multiple("k", p.k, 8, why);
  require_aligned_matrices(p);
}

void require_shared_memory(const std::string& argument, size_t bytes, size_t most) {
  if (bytes <= most) return;
  const auto kilobytes = [](size_t count) { return fmt::format("{:.0f} KB", double(count) / 1024); };
  throw std::invalid_argument(fmt::format("{}: a block needs {} of shared memory, and {} gives it {}",
                                          argument, kilobytes(bytes), device_info().name, kilobytes(most)));
}

}  // namespace ladder
