/// @file
/// cudaStream*, cudaEvent* and host functions.
#include <cerrno>  // program_invocation_short_name
#include <cstdio>
#include <set>
#include <string>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/observe/source_lines.hpp"
#include "common/cpu_device/streams/graph_capture.hpp"

namespace cpu_device {
namespace {

/// CUDA's range on an H200.
constexpr int kLeastPriority = 0, kGreatestPriority = -5;

/// The event's capture, while it goes on; an event that was recorded in one that has ended is unrecorded.
std::shared_ptr<Capture> capture_of(const CUevent_st& event) {
  return event.capture && streams().captures.count(event.capture.get()) ? event.capture : nullptr;
}

/// "stream 1 (`one`, created at main.cu:5)"; without its origin if that is a helper that lessons share.
std::string with_origin(const std::string& stream, const std::string& origin, bool is_helper) {
  return stream + (origin.empty() || is_helper ? "" : " (" + origin + ")");
}

/// A stream that captures waits for an event that none of its streams has recorded.
void explain_uncaptured_event(const CUstream_st& stream, const CUevent_st& event) {
  if (!event.recorded) {
    explain_error("  nobody has recorded that event in a stream of the capture");
    return;
  }
  const Operation& record = *event.recorded;
  std::string text = "  the event was recorded" +
                     (record.where.line ? " at " + describe_place(record.where) : std::string()) + " in " +
                     with_origin(record.stream, record.stream_origin, record.stream_creators != nullptr) +
                     ", which is not in the capture of " +
                     with_origin(stream.name, stream.origin, stream.creators != nullptr);
  const auto& idle = stream.capture->waits_for_itself;
  if (idle.empty()) {
    text += ": a stream joins a capture by a wait for an event that was recorded in it";
  } else {
    const auto& [where, name] = idle.begin()->second;
    text += "; the wait" + (where.line ? " at " + describe_place(where) : std::string()) + " is in " + name +
            ", which has recorded its event itself: must the other stream wait there, to join the capture?";
  }
  explain_error(text);
}

/// Polling must come to an end on every schedule: each look lets one thing happen.
cudaError_t query(const OperationPointer& operation) {
  if (!operation->done) streams().run_one_of_those_needed_by(operation);
  if (!operation->done) return cudaErrorNotReady;
  streams().wait_on_host(operation);
  release_unused_memory_of_pools();
  return cudaSuccess;
}

cudaError_t wait(const OperationPointer& operation) {
  if (operation) streams().wait_on_host(operation);
  release_unused_memory_of_pools();
  return cudaSuccess;
}

cudaError_t wait_for_captured_event(CUstream_st& stream, const CUevent_st& event,
                                    const std::shared_ptr<Capture>& capture, Location where) {
  if (stream.is_legacy) return cudaErrorStreamCaptureImplicit;
  if (!stream.capture) {
    join_capture(stream, capture);
    stream.joined_capture_at = where;
  }
  if (stream.capture != capture) return cudaErrorStreamCaptureMerge;
  if (event.capture_lane == stream.capture_lane) capture->waits_for_itself[&event] = {where, stream.name};
  stream.capture_front.insert(stream.capture_front.end(), event.capture_front.begin(),
                              event.capture_front.end());
  return cudaSuccess;
}

cudaError_t create_stream(const char* function, cudaStream_t* stream, unsigned flags, int priority,
                          Location where) {
  return host_call(function, [&] {
    if (!stream || flags > cudaStreamNonBlocking) return cudaErrorInvalidValue;
    *stream = streams().create_stream(current_device(), flags != cudaStreamNonBlocking, priority);
    (*stream)->origin = describe_creation(where, reinterpret_cast<const void* const*>(stream));
    if (std::string_view(where.file).find("common/cuda/") != std::string_view::npos)
      (*stream)->creators = std::make_shared<const std::vector<uintptr_t>>(calling_now());
    return cudaSuccess;
  });
}

cudaError_t create_event(const char* function, cudaEvent_t* event, unsigned flags) {
  return host_call(function, [&] {
    if (!event) return cudaErrorInvalidValue;
    *event = new CUevent_st;
    (*event)->device = current_device();
    (*event)->has_time = !(flags & cudaEventDisableTiming);
    streams().events.insert(*event);
    return cudaSuccess;
  });
}

/// Legal, but who wrote it wanted an order. @param stream that passes over the wait; null: the host does
void warn_of_unrecorded(const std::string& call, const CUstream_st* stream, const CUevent_st& event,
                        const Location& where) {
  static auto& warned = *new std::set<std::string>;
  if (stream) streams().note_wait_for_nothing(*stream, event, where);
  if (!options().warn) return;
  const std::string place =
      where.line ? describe_place(where) : describe_call_site(reinterpret_cast<uintptr_t>(where.call));
  const std::string what = call + ", at " + place + ", waits for an event that was not recorded before";
  if (!warned.insert(what).second) return;
  std::fprintf(stderr, "%s: warning: %s; CUDA passes over it, and nothing is ordered\n",
               program_invocation_short_name, what.c_str());
}

}  // namespace
}  // namespace cpu_device

using namespace cpu_device;

cudaError_t cudaStreamCreate(cudaStream_t* stream, Location where) {
  return create_stream("cudaStreamCreate", stream, cudaStreamDefault, 0, where);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags, Location where) {
  return create_stream("cudaStreamCreateWithFlags", stream, flags, 0, where);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority, Location where) {
  return create_stream("cudaStreamCreateWithPriority", stream, flags, priority, where);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return host_call("cudaDeviceGetStreamPriorityRange", [&] {
    if (least) *least = kLeastPriority;
    if (greatest) *greatest = kGreatestPriority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return destroying_call("cudaStreamDestroy", [&] {
    CUstream_st* found = stream ? streams().find(stream, DefaultStream::legacy, current_device()) : nullptr;
    if (!found || found != stream) return cudaErrorInvalidResourceHandle;
    // What is queued still runs, as with CUDA, which releases the stream when that is done.
    const std::string name = found->name;
    const bool captures = found->capture != nullptr;
    if (captures) end_capture(*std::shared_ptr<Capture>(found->capture));
    streams().destroy_stream(found);
    if (std::uncaught_exceptions()) return cudaSuccess;  // Whoever unwinds cannot have waited.
    if (captures) fail("cudaStreamDestroy of " + name + ", whose capture of a graph was left open");
    return cudaSuccess;
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream, DefaultStream meaning) {
  return host_call("cudaStreamSynchronize", [&] {
    const CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (found->capture) {
      found->capture->is_invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    return wait(found->last);
  });
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, DefaultStream meaning) {
  return host_call("cudaStreamGetId", [&] {
    const CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (!id) return cudaErrorInvalidValue;
    if (found->capture) {
      found->capture->is_invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    *id = found->id;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamQuery(cudaStream_t stream, DefaultStream meaning) {
  return host_call("cudaStreamQuery", [&] {
    const CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (found->capture) {
      found->capture->is_invalid = true;
      return cudaErrorStreamCaptureUnsupported;
    }
    return found->last ? query(found->last) : cudaSuccess;
  });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned, DefaultStream meaning,
                                Location where) {
  return host_call("cudaStreamWaitEvent", [&] {
    CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found || !streams().events.count(event)) return cudaErrorInvalidResourceHandle;
    if (const std::shared_ptr<Capture> capture = capture_of(*event))
      return wait_for_captured_event(*found, *event, capture, where);
    if (found->capture) {
      explain_uncaptured_event(*found, *event);
      found->capture->is_invalid = true;
      return cudaErrorStreamCaptureIsolation;
    }
    if (!event->recorded) {
      warn_of_unrecorded("cudaStreamWaitEvent on " + found->name, found, *event, where);
      return cudaSuccess;
    }
    Work work{"cudaStreamWaitEvent", "", where};
    work.is_on_timeline = false;
    streams().note_wait(streams().enqueue(*found, std::move(work), {event->recorded}), *event);
    return cudaSuccess;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user_data,
                               DefaultStream meaning, Location where) {
  return host_call("cudaLaunchHostFunc", [&] {
    CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (!function) return cudaErrorInvalidValue;
    Work work{"host", "", where};
    work.is_host_function = true;
    work.run = [function, user_data](Operation&) { function(user_data); };
    const OperationPointer operation = streams().enqueue(*found, std::move(work));
    if (operation && !operation->done) watch_for_a_spinning_host();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return host_call("cudaStreamGetPriority", [&] {
    const CUstream_st* found = streams().find(stream, DefaultStream::legacy, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (!priority) return cudaErrorInvalidValue;
    *priority = found->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return host_call("cudaStreamGetFlags", [&] {
    const CUstream_st* found = streams().find(stream, DefaultStream::legacy, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (!flags) return cudaErrorInvalidValue;
    *flags = found->is_blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* user_data,
                                  unsigned flags, DefaultStream meaning, Location where) {
  return host_call("cudaStreamAddCallback", [&] {
    CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found) return cudaErrorInvalidResourceHandle;
    if (!callback || flags) return cudaErrorInvalidValue;
    if (found->capture) return cudaErrorStreamCaptureUnsupported;
    Work work{"host", "", where};
    work.is_host_function = true;
    work.run = [=](Operation&) { callback(stream, cudaSuccess, user_data); };
    const OperationPointer operation = streams().enqueue(*found, std::move(work));
    if (operation && !operation->done) watch_for_a_spinning_host();
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags,
                                     DefaultStream meaning, Location where) {
  return flags ? cudaErrorNotSupported : cudaEventRecord(event, stream, meaning, where);
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return create_event("cudaEventCreate", event, cudaEventDefault);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return create_event("cudaEventCreateWithFlags", event, flags);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return destroying_call("cudaEventDestroy", [&] {
    if (!streams().events.erase(event)) return cudaErrorInvalidResourceHandle;
    streams().forget_event(*event);
    delete event;  // what was recorded, and who waits for it, is in the streams
    return cudaSuccess;
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream, DefaultStream meaning, Location where) {
  return host_call("cudaEventRecord", [&] {
    CUstream_st* found = streams().find(stream, meaning, current_device());
    if (!found || !streams().events.count(event) || event->device != found->device)
      return cudaErrorInvalidResourceHandle;
    if (found->is_legacy && !streams().captures.empty()) return cudaErrorStreamCaptureImplicit;
    if (found->capture) {
      event->capture = found->capture;
      event->capture_front = found->capture_front;
      event->capture_lane = found->capture_lane;
      event->recorded = nullptr;
      return cudaSuccess;
    }
    Work work{"cudaEventRecord", "", where};
    work.is_on_timeline = false;
    event->capture = nullptr;
    const OperationPointer behind = found->last;
    streams().note_record(*event, streams().enqueue(*found, std::move(work)), behind);
    return cudaSuccess;
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Location where{"", 0, __builtin_return_address(0)};
  return host_call("cudaEventSynchronize", [&] {
    if (!streams().events.count(event)) return cudaErrorInvalidResourceHandle;
    if (capture_of(*event)) return cudaErrorCapturedEvent;
    if (!event->recorded) warn_of_unrecorded("cudaEventSynchronize", nullptr, *event, where);
    if (event->recorded) streams().note_wait(nullptr, *event);
    return wait(event->recorded);
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return host_call("cudaEventQuery", [&] {
    if (!streams().events.count(event)) return cudaErrorInvalidResourceHandle;
    if (capture_of(*event)) return cudaErrorCapturedEvent;
    // Before the first record, the usual way to ask whether something is free.
    return event->recorded ? query(event->recorded) : cudaSuccess;
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return host_call("cudaEventElapsedTime", [&] {
    for (CUevent_st* event : {start, end}) {
      if (!streams().events.count(event) || !event->recorded || !event->has_time)
        return cudaErrorInvalidResourceHandle;
      if (!event->recorded->done) return cudaErrorNotReady;
    }
    streams().time_us();
    *milliseconds = static_cast<float>((end->recorded->end->us - start->recorded->end->us) / 1000);
    return cudaSuccess;
  });
}
