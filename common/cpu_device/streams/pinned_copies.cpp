/// @file
/// What the host must leave alone while a copy is queued: the source, which is compared with what it was, and
/// the target, which is spoiled so that who reads it too early finds NaN.
#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <tuple>

#include "common/cpu_device/base/unwritten.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {
namespace {

bool overlap(const Touch& one, const Touch& other) {
  return one.begin < other.begin + other.bytes && other.begin < one.begin + one.bytes;
}

/// Whether the operation is known to touch something that `copy` reads (or writes).
bool touches(const Operation& operation, const Operation& copy, bool copy_writes, bool only_writes) {
  return std::any_of(operation.touches.begin(), operation.touches.end(), [&](const Touch& touch) {
    if (only_writes && !touch.write) return false;
    return std::any_of(copy.touches.begin(), copy.touches.end(),
                       [&](const Touch& own) { return own.write == copy_writes && overlap(touch, own); });
  });
}

/// Whether it may use any memory of the host, or wait for what the host does.
bool may_use_host_memory(const Operation& operation) {
  return operation.is_host_function || operation.collective || operation.reaches_host || operation.put_off ||
         operation.met_others;
}

std::string partial;

}  // namespace

const std::string& partial_download() { return partial; }

void StreamEngine::note_download(const OperationPointer& copy) {
  for (const Touch& touch : copy->touches) {
    const AllocationPointer from = touch.write || !partial.empty() ? nullptr : memory.find_begin(touch.begin);
    if (from && from->kind == MemoryKind::device && touch.bytes < from->bytes)
      partial = fmt::format("\n  {} brings the first {} bytes of {}, and not the rest: {}", copy->describe(),
                            touch.bytes, from->describe(), describe_place(copy->where));
  }
}

void StreamEngine::remember_source(Operation& copy) {
  if (copy.source.empty()) ++sources_;
  copy.source.clear();
  for (const Touch& touch : copy.touches) {
    if (!touch.write) copy.source.insert(copy.source.end(), touch.begin, touch.begin + touch.bytes);
  }
}

void StreamEngine::remember_sources_after(const Operation& done) {
  if (!sources_) return;
  const bool may_use = may_use_host_memory(done);
  for (const auto& [id, copy] : pending_) {
    if (copy->source.empty() || copy.get() == &done || !done.is_before(*copy)) continue;
    if (may_use || touches(done, *copy, /*copy_writes=*/false, /*only_writes=*/true)) remember_source(*copy);
  }
}

void StreamEngine::check_source(Operation& copy) {
  const std::byte* expected = copy.source.data();
  const std::byte *begin = nullptr, *end = nullptr, *changed = nullptr;
  for (const Touch& touch : copy.touches) {
    if (touch.write) continue;
    if (!begin) begin = touch.begin;
    end = touch.begin + touch.bytes;
    if (!changed && std::memcmp(touch.begin, expected, touch.bytes) != 0)
      changed = std::mismatch(touch.begin, end, expected).first;
    expected += touch.bytes;
  }
  copy.source.clear();
  --sources_;
  if (!changed) return;
  const AllocationPointer allocation = memory.find(begin);
  std::string cause, why;
  if (allocation && allocation->slot) std::tie(cause, why) = explain_slot(copy, *allocation);
  if (why.empty()) why = explain_use_of_source(copy);
  if (why.empty()) why = explain_early_host_function(copy);
  if (why.empty()) why = explain_told_host(copy);
  const std::byte* const first = allocation ? allocation->begin : begin;
  fail(fmt::format(
      "{}the source of {} has changed since it was queued, first at byte {}: it copies bytes {} to "
      "{} of {}, and "
      "whoever changes them must wait until it has run{}\n  cudaMemcpyAsync at {}",
      cause, copy.describe(), changed - first, begin - first, end - first - 1,
      allocation ? allocation->describe() : "memory of the host", why, describe_place(copy.where)));
}

void StreamEngine::spoil_target(const Operation& copy) const {
  for (const auto& [id, other] : pending_) {
    if (other.get() == &copy) continue;
    if (touches(*other, copy, /*copy_writes=*/true, /*only_writes=*/false)) return;
    if (may_use_host_memory(*other) && other->is_before(copy)) return;
  }
  for (const Touch& touch : copy.touches) {
    if (touch.write) std::memset(const_cast<std::byte*>(touch.begin), unwritten_byte, touch.bytes);
  }
}

}  // namespace cpu_device
