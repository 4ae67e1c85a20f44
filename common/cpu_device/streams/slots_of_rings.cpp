/// @file
/// Slots of pinned memory that a ring of the program hands out and gets back: for reports, which name the
/// slot and what was still queued on it. To give a slot back early is no mistake by itself: who takes it next
/// may wait. It is told where something has gone wrong.
#include <fmt/core.h>
#include <algorithm>
#include <exception>
#include <utility>

#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {
namespace {

constexpr size_t kMostGivenBack = 64;  ///< that are remembered of a slot

bool touches(const Operation& operation, const Allocation& memory, bool only_writes) {
  return std::any_of(operation.touches.begin(), operation.touches.end(), [&](const Touch& touch) {
    return (touch.write || !only_writes) && memory.contains(touch.begin);
  });
}

/// "the host, at 07_streams/pipeline.cpp:88 in enqueue,": the first call outside the ring's own file.
std::string describe_giver(const SlotOfRing::GivenBack& given) {
  if (given.by)
    return fmt::format("{}, queued at {},", given.by->describe(), describe_place(given.by->where));
  const std::vector<std::string> calls = own_calls(given.callers);
  if (calls.empty()) return "the host";
  const auto file_of = [](const std::string& call) { return call.substr(0, call.find(':')); };
  const auto caller = std::find_if(calls.begin(), calls.end(), [&](const std::string& call) {
    return file_of(call) != file_of(calls.front());
  });
  return "the host, at " + (caller == calls.end() ? calls.front() : *caller) + ",";
}

}  // namespace

void note_slot_taken(const std::string& ring, int number, const void* memory) {
  streams().note_slot_taken(ring, number, memory);
}
void note_slot_given_back(const void* memory) { streams().note_slot_given_back(memory); }

void StreamEngine::note_slot_taken(const std::string& ring, int number, const void* begin) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const AllocationPointer allocation = memory.find_begin(begin);
  if (!allocation) return;
  if (!allocation->slot) {
    allocation->slot = std::make_shared<SlotOfRing>();
    allocation->slot->name = fmt::format("slot {} of the {} ring", number, ring);
  }
  allocation->slot->is_held = true;
  allocation->slot->since = last_id_;
}

void StreamEngine::note_slot_given_back(const void* begin) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const AllocationPointer allocation = memory.find_begin(begin);
  if (!allocation || !allocation->slot) return;
  SlotOfRing& slot = *allocation->slot;
  slot.is_held = false;
  slot.since = last_id_;
  // Destructors on the way of an exception give back what they must.
  if (std::uncaught_exceptions() > 0) return;
  SlotOfRing::GivenBack given;
  const Operation* const function = running_host_function();
  std::string download;
  for (const auto& [id, operation] : pending_) {
    if (operation.get() == function || !touches(*operation, *allocation, /*only_writes=*/false)) continue;
    if (function && operation->is_before(*function)) continue;
    given.queued.push_back(operation);
    if (download.empty() && touches(*operation, *allocation, /*only_writes=*/true))
      download = operation->describe();
  }
  if (given.queued.empty()) return;
  if (function)
    given.by = function->shared_from_this();
  else
    given.callers = calling_now();
  if (early_give_back_.empty() && !download.empty())
    early_give_back_ = fmt::format("\n  {} gave {} back while {}, which writes it, was still queued",
                                   describe_giver(given), slot.name, download);
  slot.too_early.push_back(std::move(given));
  if (slot.too_early.size() > kMostGivenBack) slot.too_early.pop_front();
}

std::pair<std::string, std::string> StreamEngine::explain_slot(const Operation& copy,
                                                               const Allocation& allocation) const {
  const SlotOfRing& slot = *allocation.slot;
  for (const SlotOfRing::GivenBack& given : slot.too_early) {
    const bool was_queued =
        std::any_of(given.queued.begin(), given.queued.end(),
                    [&](const std::weak_ptr<Operation>& one) { return one.lock().get() == &copy; });
    if (!was_queued) continue;
    return {fmt::format("{} was given back while {}, which reads it, was still queued: ", slot.name,
                        copy.describe()),
            fmt::format("\n  {} gave it back{}", describe_giver(given),
                        given.by ? " too early: " + explain_no_order(copy, *given.by)
                                 : " and had not waited for that")};
  }
  if (!slot.is_held && slot.since < copy.id)
    return {
        fmt::format("{} was given back before {}, which reads it, was queued: ", slot.name, copy.describe()),
        ""};
  if (slot.is_held && slot.since < copy.id)
    return {fmt::format(
                "{}, which nobody has given back, was written to after {} had been queued, which reads it: ",
                slot.name, copy.describe()),
            ""};
  return {};
}

}  // namespace cpu_device
