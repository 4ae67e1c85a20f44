/// @file
/// Tells what nobody has written from what no fence has published.
#include "common/cpu_device/kernel/unwritten_reads.hpp"

#include <cstring>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"

namespace cpu_device {

/// Fresh shared memory holds this, and no sum of numbers does.
bool UnwrittenReads::is_poison(const std::byte* bytes) {
  uint64_t words[2];
  std::memcpy(words, bytes, sizeof words);
  return (words[0] & words[1]) == ~uint64_t{0};
}

void UnwrittenReads::remember(Block& block, size_t offset, const char* what, Location where) {
  const bool is_written = !is_poison(block.shared.generic() + offset);
  First& first = is_written ? unpublished_ : unwritten_;
  if (!first.text.empty()) return;
  const Unobserved unobserved;  // strings are made, maybe by a copy of their functions that is instrumented
  const std::string name = block.warps[0].lanes[0]->cluster.layout().name_of(offset);
  first.cluster = cluster_;
  first.text = std::string(what) + " at " + to_string(where) + " read shared memory " +
               (is_written ? "that threads had written and no fence.proxy.async had published"
                           : "before anything was written to it") +
               " (" + describe(block) + ", " + (name.empty() ? print("byte %zu", offset) : name) + ")";
}

void UnwrittenReads::add(const UnwrittenReads& other) {
  const auto merge = [](First& to, const First& from) {
    if (!from.text.empty() && (to.text.empty() || from.cluster < to.cluster)) to = from;
  };
  merge(unwritten_, other.unwritten_);
  merge(unpublished_, other.unpublished_);
}

}  // namespace cpu_device
