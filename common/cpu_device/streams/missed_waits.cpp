/// @file
/// Waits for events that may have missed what they were meant for: what reports of a missing order say of
/// them.
#include <fmt/core.h>
#include <algorithm>
#include <utility>

#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/streams/stream_engine.hpp"

namespace cpu_device {
namespace {

constexpr size_t kMaxWaits = 256;  ///< that are remembered
constexpr const char* kMissing = "a cudaStreamWaitEvent is missing, or one of the two is on a wrong stream";

template <class Wait>
void remember(std::deque<Wait>& waits, Wait wait) {
  waits.push_back(std::move(wait));
  if (waits.size() > kMaxWaits) waits.pop_front();
}

/// Whether the kernel has a parameter that points there.
bool is_given(const Operation& operation, const std::byte* begin, const std::byte* end) {
  return std::any_of(operation.pointers.begin(), operation.pointers.end(),
                     [&](const void* pointer) { return pointer >= begin && pointer < end; });
}

}  // namespace

void StreamEngine::note_wait_for_nothing(const CUstream_st& stream, const CUevent_st& event,
                                         const Location& where) {
  std::erase_if(waits_for_nothing_, [&](const WaitForNothing& wait) {
    return wait.stream == stream.name && wait.event == &event && !wait.record;
  });
  remember(waits_for_nothing_, {stream.name, where, &event, nullptr, last_id_});
}

void StreamEngine::note_wait(const OperationPointer& wait, const CUevent_st& event) {
  remember(waits_for_records_, {wait, event.recorded, event.recorded_before, last_id_});
}

void StreamEngine::note_record(CUevent_st& event, OperationPointer record, OperationPointer behind) {
  remember(records_of_events_, {record, std::move(behind)});
  std::erase_if(event.recorded_before,
                [&](const OperationPointer& before) { return before->lane == record->lane; });
  if (event.recorded && event.recorded->lane != record->lane) event.recorded_before.push_back(event.recorded);
  event.recorded = record;
  for (WaitForNothing& wait : waits_for_nothing_) {
    if (wait.event == &event && !wait.record) wait.record = record;
  }
}

void StreamEngine::forget_event(const CUevent_st& event) {
  for (WaitForNothing& wait : waits_for_nothing_) {
    if (wait.event == &event) wait.event = nullptr;
  }
}

std::string StreamEngine::explain_early_record(const Operation& first, const Operation& second) const {
  const auto is_meant = [&](const WaitForRecord& wait) {
    if (wait.last->lane != first.lane || wait.last->id > first.id) return false;
    // A wait that was made before the first operation was meant for what came before.
    return wait.id >= first.id && wait.id < second.id && (!wait.wait || wait.wait->is_before(second));
  };
  const auto found = std::find_if(waits_for_records_.rbegin(), waits_for_records_.rend(), is_meant);
  if (found == waits_for_records_.rend()) return "";
  return fmt::format("{} waits for an event that was recorded before {}, at {}: record it after that",
                     found->wait ? found->wait->stream : "the host", first.describe(),
                     describe_place(found->last->where));
}

std::string StreamEngine::WaitForNothing::describe() const {
  return fmt::format(
      "{} waits, at {}, for an event that was not recorded before: it {}", stream, describe_place(where),
      record ? "is recorded at " + describe_place(record->where) : "has not been recorded yet");
}

std::string StreamEngine::explain_wait_without_order(const Operation& first, const Operation& second) const {
  const auto is_between = [&](uint64_t id) { return id >= first.id && id < second.id; };
  for (const WaitForRecord& missed : waits_for_records_) {
    if (!missed.wait || !missed.wait->is_before(second) || first.is_before(*missed.last)) continue;
    for (const OperationPointer& earlier : missed.earlier) {
      if (!first.is_before(*earlier)) continue;
      return fmt::format(
          "{} waits for an event whose last record, on {}, does not cover {}: it was recorded on {} before",
          missed.wait->stream, missed.last->stream, first.describe(), earlier->stream);
    }
  }
  for (auto missed = waits_for_records_.rbegin(); missed != waits_for_records_.rend(); ++missed) {
    if (!missed->wait || missed->wait->stream != second.stream || missed->last->stream != second.stream)
      continue;
    if (!is_between(missed->id) || !missed->wait->is_before(second)) continue;
    return fmt::format(
        "{0} waits, at {1}, for an event that was recorded on {0} itself, at {2}, which orders nothing with "
        "{3}",
        second.stream, describe_place(missed->wait->where), describe_place(missed->last->where),
        first.stream);
  }
  const auto is_meant = [&](const WaitForNothing& wait) {
    if (wait.stream != second.stream) return false;
    // A record that does not cover the first, or that comes after the second, was not meant to order them.
    return wait.record ? first.is_before(*wait.record) && !second.is_before(*wait.record)
                       : is_between(wait.id);
  };
  const auto nothing = std::find_if(waits_for_nothing_.rbegin(), waits_for_nothing_.rend(), is_meant);
  return nothing == waits_for_nothing_.rend() ? "" : nothing->describe();
}

std::string StreamEngine::explain_missing_wait(const Operation& first, const Operation& second) const {
  const auto is_meant = [&](const WaitForRecord& wait) {
    return wait.wait && wait.wait->lane == second.lane && wait.id >= first.id && wait.wait->is_before(second);
  };
  const auto wait = std::find_if(waits_for_records_.rbegin(), waits_for_records_.rend(), is_meant);
  const auto name_of = [](const Location& where, const char* call, unsigned argument) {
    const std::string name = argument_of_call(where, call, argument);
    return name.empty() ? std::string("an event") : "`" + name + "`";
  };
  if (wait == waits_for_records_.rend()) {
    for (const WaitForRecord& other : waits_for_records_) {
      if (!other.wait || other.last->lane != first.lane || other.last->id < first.id || other.id > second.id)
        continue;
      return fmt::format("{}: {} waits, at {}, for {}, which covers {}, and {} does not", kMissing,
                         other.wait->stream, describe_place(other.wait->where),
                         name_of(other.wait->where, "cudaStreamWaitEvent", 1), first.describe(),
                         second.stream);
    }
    return kMissing;
  }
  const auto recorded = [](const Operation& record) { return "recorded at " + describe_place(record.where); };
  const Operation& last = *wait->last;
  std::string behind;
  for (const RecordOfEvent& one : records_of_events_)
    if (one.record == wait->last && one.behind && !one.behind->is_of_event())
      behind = " behind " + one.behind->describe();
  std::string text =
      fmt::format("{} waits, at {}, for {}, {}{}{}, which does not cover {}", second.stream,
                  describe_place(wait->wait->where), name_of(wait->wait->where, "cudaStreamWaitEvent", 1),
                  recorded(last), behind.empty() ? " on " + last.stream : "", behind, first.describe());
  for (const RecordOfEvent& one : records_of_events_) {
    if (one.record->lane != first.lane || one.record->id < first.id || one.record->id > second.id) continue;
    // A helper may record all events, or a loop.
    if (describe_place(one.record->where) == describe_place(last.where))
      return text +
             "; another one, recorded at the same line, does: is a cudaStreamWaitEvent for it missing?";
    return text + "; " + name_of(one.record->where, "cudaEventRecord", 0) + ", " + recorded(*one.record) +
           ", does";
  }
  return text;
}

std::string StreamEngine::explain_early_run(const Operation& copy, const Operation& function) const {
  std::string why = explain_early_record(copy, function);
  if (why.empty()) why = explain_wait_without_order(copy, function);
  return why.empty() ? explain_missing_wait(copy, function) : why;
}

void StreamEngine::note_told_host(std::shared_ptr<const Operation> function, const std::string& signal) {
  if (sources_) remember(told_host_by_, {std::move(function), signal, last_id_});
}

std::string StreamEngine::explain_told_host(const Operation& copy) const {
  for (const ToldHost& told : told_host_by_) {
    const Operation& function = *told.function;
    if (told.id < copy.id || function.id < copy.id || copy.is_before(function)) continue;
    std::string why = explain_early_run(copy, function);
    if (why == kMissing) why = "is a cudaStreamWaitEvent missing there?";
    return fmt::format("\n  {}, queued at {}, has told the host of {}, and does not come behind {}: {}",
                       function.describe(), describe_place(function.where), told.signal, copy.describe(),
                       why);
  }
  return "";
}

std::string StreamEngine::explain_no_order(const Operation& copy, const Operation& function) const {
  if (function.id < copy.id)
    return (function.is_before(copy) ? "it is queued before " : "nothing orders it with ") + copy.describe();
  const std::string why = explain_early_run(copy, function);
  if (why != kMissing) return why;
  return function.stream + " does not wait for " + copy.describe() + ", so a cudaStreamWaitEvent is missing";
}

std::string StreamEngine::explain_use_of_source(const Operation& copy) const {
  const auto is_source = [&](const Ranges::Range& range) {
    return std::any_of(copy.touches.begin(), copy.touches.end(), [&](const Touch& touch) {
      const auto begin = reinterpret_cast<uintptr_t>(touch.begin);
      return !touch.write && begin < range.end && range.begin < begin + touch.bytes;
    });
  };
  for (const UseByHost& use : uses_by_host_) {
    if (use.id < copy.id || std::none_of(use.ranges.begin(), use.ranges.end(), is_source)) continue;
    const Operation& function = *use.function;
    if (!use.gives_back && function.is_before(copy)) continue;
    const std::string why = explain_no_order(copy, function);
    return fmt::format("\n  {}, queued at {}, {} too early: {}", function.describe(),
                       describe_place(function.where),
                       use.gives_back ? "gave that memory back" : "wrote to that memory", why);
  }
  return "";
}

std::string StreamEngine::explain_early_host_function(const Operation& copy) const {
  for (const OperationPointer& function : host_functions_that_ran_) {
    if (function->id < copy.id || copy.is_before(*function)) continue;
    if (const std::string why = explain_wait_without_order(copy, *function); !why.empty())
      return fmt::format("\n  {}, queued behind that at {}, has run before it: {}", function->describe(),
                         describe_place(function->where), why);
  }
  return "";
}

std::string StreamEngine::explain_legacy_kernel(const Operation& one, const Operation& other) const {
  const Operation& kernel = one.on_legacy_stream ? one : other;
  const Operation& free = &kernel == &one ? other : one;
  if (!kernel.on_legacy_stream || !kernel.is_kernel() || free.on_legacy_stream) return "";
  std::string text = fmt::format(
      "kernel {} is on the legacy stream, which neither waits for {} nor lets it wait: that is non-blocking",
      kernel.name, free.stream);
  for (const void* pointer : kernel.pointers) {
    const AllocationPointer given = memory.find_at(kernel.id, pointer);
    if (!given || !given->pool) continue;
    return text + "; the kernel is given " + given->describe();
  }
  return text;
}

std::string StreamEngine::explain_missing_order(const Operation& first, const Operation& second,
                                                const std::byte* begin, const std::byte* end) const {
  std::string text;
  // Where the first one runs late, others of its stream have not shown yet what they touch.
  for (auto next = pending_.rbegin(); next != pending_.rend() && next->first > first.id; ++next) {
    const Operation& other = *next->second;
    if (other.id >= second.id || !is_given(other, begin, end) || !first.is_before(other) ||
        other.is_before(second))
      continue;
    text += fmt::format("; nor is {} ordered, which comes after that and may touch the same memory",
                        other.describe());
    break;
  }
  const auto is_meant = [&](const WaitForNothing& wait) {
    return wait.stream == first.stream && !wait.record;
  };
  const auto found = std::find_if(waits_for_nothing_.rbegin(), waits_for_nothing_.rend(), is_meant);
  if (found != waits_for_nothing_.rend()) text += "; " + found->describe();
  return text;
}

}  // namespace cpu_device
