/// @file
/// Tells what nobody has written from what no fence has published.
#include "common/cpu_device/kernel/reports/unwritten_reads.hpp"

#include <cstring>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {

/// Fresh shared memory holds this, and no sum of numbers does.
bool UnwrittenReads::is_poison(const std::byte* half) {
  constexpr uint64_t kEachByte = 0x0101010101010101;
  uint64_t word;
  std::memcpy(&word, half, sizeof word);
  return word == kEachByte * static_cast<uint64_t>(unwritten_byte);
}

/// Of a chunk of which one half is written: the cp.async that was too short, and the bytes that it left.
std::string UnwrittenReads::explain_narrow_copy(unsigned block, size_t offset, const std::byte* chunk) const {
  if (is_poison(chunk) == is_poison(chunk + kHalf)) return "";
  const auto copy = narrow_copies_.find({block, offset / kChunk});
  if (copy == narrow_copies_.end()) return "";
  const size_t first = is_poison(chunk) ? 0 : copy->second.bytes < kHalf ? copy->second.bytes : kHalf;
  return print(
      ": the cp.async at %s copies %u of the %zu bytes of a chunk, and nobody has written its bytes %zu to "
      "%zu",
      own_place(copy->second.where).c_str(), copy->second.bytes, kChunk, first,
      is_poison(chunk) ? kHalf - 1 : kChunk - 1);
}

void UnwrittenReads::remember(Block& block, size_t offset, const std::byte* seen, const char* what,
                              Location where, bool of_first_row) {
  const std::byte* const chunk = block.shared.generic() + offset;
  const size_t half = is_poison(seen) ? 0 : kHalf;
  const bool is_written = !is_poison(chunk + half);
  First& first = is_written ? unpublished_ : of_first_row ? unwritten_first_row_ : unwritten_;
  if (!first.text.empty()) return;
  const Unobserved unobserved;  // strings are made, maybe by a copy of their functions that is instrumented
  offset += half;
  const std::string name = block.warps[0].lanes[0]->cluster.layout().name_of(offset);
  first.cluster = cluster_;
  first.block = block.ids.rank_in_cluster;
  first.offset = offset;
  first.text = std::string(what) + " at " + to_string(where) + " read shared memory " +
               (is_written ? "that threads had written and no fence.proxy.async had published"
                           : "before anything was written to it") +
               " (" + describe(block) + ", " + (name.empty() ? print("byte %zu", offset) : name) + ")" +
               (is_written ? "" : explain_narrow_copy(first.block, offset - half, chunk));
}

void UnwrittenReads::note_load(const Block& block, size_t offset, const void* return_address) {
  if (!unwritten_.text.empty()) return;
  const Unobserved unobserved;
  const std::string name = block.warps[0].lanes[0]->cluster.layout().name_of(offset);
  unwritten_.cluster = cluster_;
  unwritten_.block = block.ids.rank_in_cluster;
  unwritten_.offset = offset;
  unwritten_.text = "a load at " + describe_call_site(reinterpret_cast<uintptr_t>(return_address)) +
                    " read shared memory before anything was written to it (" + describe(block) + ", " +
                    (name.empty() ? print("byte %zu", offset) : name) + ")";
}

void note_unwritten_load(unsigned block, size_t offset, const void* return_address) {
  Cluster& cluster = current_thread->cluster;
  cluster.unwritten_reads().note_load(*cluster.blocks()[block], offset, return_address);
}

void UnwrittenReads::end(Cluster& cluster) {
  for (First* first : {&unwritten_, &unwritten_first_row_}) end(*first, cluster);
}

void UnwrittenReads::end(First& first, Cluster& cluster) const {
  RaceChecker* const races = cluster.races();
  if (first.text.empty() || first.cluster != cluster_ || first.is_ended || !races) return;
  first.is_ended = true;
  const Unobserved unobserved;
  const std::string writer = races->describe_last_write(first.block, first.offset);
  first.text += writer.empty() ? "; nor was it after that" : "; too late came the " + writer;
}

void UnwrittenReads::add(const UnwrittenReads& other) {
  const auto merge = [](First& to, const First& from) {
    if (!from.text.empty() && (to.text.empty() || from.cluster < to.cluster)) to = from;
  };
  merge(unwritten_, other.unwritten_);
  merge(unwritten_first_row_, other.unwritten_first_row_);
  merge(unpublished_, other.unpublished_);
  merge(overlap_, other.overlap_);
}

}  // namespace cpu_device
