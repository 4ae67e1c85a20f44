/// @file
/// Copies and fills: which engine they use, when they read their source, and when the host waits for them.
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>  // program_invocation_short_name
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/streams/guarded_memory.hpp"
#include "common/cpu_device/streams/stream_model.hpp"

namespace cpu_device {
namespace {

constexpr const char* kStaged =
    "cudaMemcpy from pageable memory returns when the data lies in a staging buffer, not when it has arrived";
constexpr const char* kFilledLater = "a memset returns before the memory is filled";

/// Rows of memory; a plain copy is one row.
struct Rows {
  std::byte* begin = nullptr;
  size_t pitch = 0;
  AllocationPointer allocation;  ///< null: pageable memory of the host
  bool on_device() const { return allocation && allocation->kind == MemoryKind::device; }
};

struct Extent {
  size_t width = 0, height = 1;
  size_t bytes() const { return width * height; }
};

/// @throws Failure if it goes beyond its allocation. (CUDA says "invalid argument".)
void look_up(Rows& rows, Extent extent, bool write, const char* function, const CUstream_st& stream,
             Location where) {
  StreamEngine& engine = streams();
  rows.allocation = engine.memory.find(rows.begin);
  if (!rows.allocation) {
    if (const AllocationPointer gone = engine.memory.find_freed(rows.begin))
      fail(fmt::format("{} on {} uses {} after its cudaFreeAsync", function, stream.name, gone->describe()),
           fmt::format("\n  {} on {}: {}{}", function, stream.name, describe_place(where),
                       gone->describe_free()));
    if (const std::string freed = freed_guarded_memory(rows.begin); !freed.empty())
      fail(fmt::format("{} on {} {} {}, which was freed before\n  called at {}", function, stream.name,
                       write ? "writes" : "reads", freed, describe_place(where)));
    return;
  }
  const size_t bytes = (extent.height - 1) * rows.pitch + extent.width;
  const auto offset = static_cast<size_t>(rows.begin - rows.allocation->begin);
  const size_t left = rows.allocation->bytes - offset;
  if (bytes <= left) return;
  fail(fmt::format(
      "{} on {} {} {} bytes {} {}, from byte {} on: {} too many\n  called at {}\n  allocated at {}", function,
      stream.name, write ? "writes" : "reads", bytes, write ? "to" : "from", rows.allocation->describe(),
      offset, bytes - left, describe_place(where), describe_place(rows.allocation->where)));
}

/// Whether all of it is mapped.
bool exists(const std::byte* begin, size_t bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(begin) + bytes;
  std::vector<unsigned char> residency((end - first + page - 1) / page);
  return mincore(reinterpret_cast<void*>(first), end - first, residency.data()) == 0;
}

/// A graph keeps addresses. Called for each captured copy where the graph is launched.
void check_captured(const char* what, const Rows& rows, Extent extent, bool write, Location where,
                    const std::byte* frame) {
  const std::string copy = fmt::format("the {} that the graph captured at {}", what, describe_place(where));
  const char* const does = write ? "writes" : "reads";
  const std::string advice =
      ": a graph copies at each launch, so what its copies use must live until the last launch has ended";
  if (rows.allocation) {
    if (rows.allocation->freed == UINT64_MAX) return;
    fail(fmt::format("{} {} {}, which was freed before this launch{}", copy, does,
                     rows.allocation->describe(), advice));
  }
  const bool has_returned = rows.begin < frame && is_on_own_stack(rows.begin);
  const size_t bytes = (extent.height - 1) * rows.pitch + extent.width;
  if (!has_returned && exists(rows.begin, bytes)) return;
  fail(fmt::format("{} {} {} bytes of the host's memory that have ended before this launch{}{}", copy, does,
                   extent.bytes(), has_returned ? " (a local variable of a function that has returned)" : "",
                   advice));
}

std::string& changed_sources() {
  static auto& all = *new std::string;
  return all;
}

/// Legal, but who did not mean it copies what is no longer there.
void warn_of_changed_source(const Rows& from, const std::vector<std::byte>& at_capture, Location where) {
  if (!options().warn || std::memcmp(from.begin, at_capture.data(), at_capture.size()) == 0) return;
  static auto& warned = *new std::set<std::pair<std::string, unsigned>>;
  if (!warned.insert({where.file, where.line}).second) return;
  const std::string text = fmt::format(
      "the {} bytes of the host that the graph copies, captured at {}, have changed since the capture: a "
      "graph "
      "reads them at each launch. Does that memory still exist?\n",
      at_capture.size(), describe_place(where));
  std::fprintf(stderr, "%s: warning: %s", program_invocation_short_name, text.c_str());
  changed_sources() += text;
}

void note(Work& work, const Rows& rows, Extent extent, bool write) {
  if (!rows.allocation) return;
  for (size_t row = 0; row < extent.height; ++row)
    work.touches.push_back({rows.begin + row * rows.pitch, extent.width, write});
}

/// Which way it goes, and so what it costs.
void choose_engine(Work& work, const Rows& to, const Rows& from, size_t bytes) {
  const auto amount = static_cast<double>(bytes);
  work.name = std::to_string(bytes) + " bytes";
  if (to.on_device() && from.on_device()) {
    const bool same = to.allocation->device == from.allocation->device;
    work.kind = "copy";
    work.engine = same ? Engine::none : Engine::peer;
    work.us = amount / (same ? kStreamModel.copy : kStreamModel.peer);
  } else if (to.on_device()) {
    work.kind = "upload";
    work.engine = Engine::upload;
    work.us = amount / kStreamModel.upload;
  } else if (from.on_device()) {
    work.kind = "download";
    work.engine = Engine::download;
    work.us = amount / kStreamModel.download;
  } else {
    work.kind = "copy";
  }
}

bool contradicts(cudaMemcpyKind kind, const Rows& to, const Rows& from) {
  return (kind == cudaMemcpyHostToDevice && from.on_device()) ||
         (kind == cudaMemcpyDeviceToHost && to.on_device());
}

void move_rows(const Rows& to, const Rows& from, Extent extent) {
  for (size_t row = 0; row < extent.height; ++row)
    std::memmove(to.begin + row * to.pitch, from.begin + row * from.pitch, extent.width);
}

/// CUDA says no more than its error.
cudaError_t refused(const char* function, cudaError_t error, const std::string& why, Location where) {
  std::fprintf(stderr, "%s fails: %s: %s\n  called at %s\n", function, cudaGetErrorString(error), why.c_str(),
               describe_place(where).c_str());
  return error;
}

cudaError_t copy(const char* function, Rows to, Rows from, Extent extent, cudaMemcpyKind kind,
                 CUstream_st* stream, bool waits, Location where) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!extent.bytes()) return cudaSuccess;
  if (!to.begin || !from.begin)
    return refused(function, cudaErrorInvalidValue,
                   fmt::format("its {} is a null pointer", to.begin ? "source" : "target"), where);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidValue;
  if (waits && stream->capture) return cudaErrorStreamCaptureUnsupported;
  look_up(to, extent, /*write=*/true, function, *stream, where);
  look_up(from, extent, /*write=*/false, function, *stream, where);
  if (contradicts(kind, to, from))
    return refused(function, cudaErrorInvalidValue,
                   kind == cudaMemcpyHostToDevice
                       ? "it is told HostToDevice, and its source lies on the device"
                       : "it is told DeviceToHost, and its target lies on the device",
                   where);
  if (stream->is_legacy && !streams().captures.empty()) return cudaErrorStreamCaptureImplicit;

  Work work("", "", where);
  choose_engine(work, to, from, extent.bytes());
  note(work, from, extent, /*write=*/false);
  note(work, to, extent, /*write=*/true);
  const bool is_upload = to.on_device() && !from.on_device();
  const bool is_within_device = to.on_device() && from.on_device();
  const bool is_pageable_upload = is_upload && !from.allocation && !stream->capture;
  if (is_pageable_upload) {
    // Pageable memory is read at the call: the driver copies it to pinned memory of its own first. Even
    // cudaMemcpy returns then.
    if (waits) work.returns_early = kStaged;
    auto staged = std::make_shared<std::vector<std::byte>>(from.begin, from.begin + extent.bytes());
    work.run = [to, staged, extent](Operation&) {
      move_rows(to, {staged->data(), extent.width, nullptr}, extent);
    };
  } else {
    work.run = [to, from, extent](Operation&) { move_rows(to, from, extent); };
  }
  if (stream->capture) {
    // Shared, because copies of it would take the place of what the program has freed, and restore it.
    const auto content = std::make_shared<std::vector<std::byte>>();
    if (!from.allocation && extent.height == 1) content->assign(from.begin, from.begin + extent.width);
    work.before_launch = [to, from, extent, where, what = work.kind, content](const std::byte* frame) {
      check_captured(what, from, extent, /*write=*/false, where, frame);
      check_captured(what, to, extent, /*write=*/true, where, frame);
      if (!content->empty()) warn_of_changed_source(from, *content, where);
    };
  }
  const bool is_queued = !waits && to.allocation && from.allocation;
  work.watches_source = is_queued && !from.on_device();
  work.spoils_target = is_queued && !to.on_device() && from.on_device();
  const OperationPointer operation = streams().enqueue(*stream, std::move(work));
  // To pageable memory, and between two places of the host, the call returns when all is done.
  const bool must_wait = !to.on_device() && (!to.allocation || !from.on_device());
  if (operation && ((waits && !is_within_device && !is_pageable_upload) || must_wait)) {
    streams().wait_on_host(operation);
    release_unused_memory_of_pools();
  }
  return cudaSuccess;
}

Rows rows_at(const void* begin, size_t pitch) {
  return {static_cast<std::byte*>(const_cast<void*>(begin)), pitch, nullptr};
}

/// @param value in each byte, or in each `element` bytes
cudaError_t fill(const char* function, Rows rows, unsigned value, Extent extent, CUstream_st* stream,
                 Location where, unsigned element = 1) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!extent.bytes()) return cudaSuccess;
  if (!rows.begin)
    return refused(function, cudaErrorInvalidValue, "what it shall fill is a null pointer", where);
  if (stream->is_legacy && !streams().captures.empty()) return cudaErrorStreamCaptureImplicit;
  look_up(rows, extent, /*write=*/true, function, *stream, where);
  Work work{"memset", std::to_string(extent.bytes()) + " bytes", where};
  work.us = static_cast<double>(extent.bytes()) / kStreamModel.memset;
  note(work, rows, extent, /*write=*/true);
  if (stream->is_legacy) work.returns_early = kFilledLater;
  work.run = [rows, value, extent, element](Operation&) {
    for (size_t row = 0; row < extent.height; ++row) {
      std::byte* const begin = rows.begin + row * rows.pitch;
      if (element == 1) std::memset(begin, static_cast<int>(value), extent.width);
      for (size_t at = 0; element > 1 && at < extent.width; at += element)
        std::memcpy(begin + at, &value, element);  // whose bytes are little-endian, as a GPU's
    }
  };
  streams().enqueue(*stream, std::move(work));
  return cudaSuccess;
}

std::byte* at(const cudaPitchedPtr& pointer, const cudaPos& from, size_t slice) {
  return static_cast<std::byte*>(pointer.ptr) + ((from.z + slice) * pointer.ysize + from.y) * pointer.pitch +
         from.x;
}

/// One slice after the other.
cudaError_t copy_slices(const char* function, const cudaMemcpy3DParms* parts, cudaStream_t stream,
                        DefaultStream meaning, bool waits, Location where) {
  return host_call(function, [&] {
    if (!parts || parts->srcArray || parts->dstArray) return cudaErrorInvalidValue;
    for (size_t slice = 0; slice < parts->extent.depth; ++slice) {
      const cudaError_t error =
          copy(function, {at(parts->dstPtr, parts->dstPos, slice), parts->dstPtr.pitch, nullptr},
               {at(parts->srcPtr, parts->srcPos, slice), parts->srcPtr.pitch, nullptr},
               {parts->extent.width, parts->extent.height}, parts->kind,
               streams().find(stream, meaning, current_device()), waits, where);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

}  // namespace
}  // namespace cpu_device

using namespace cpu_device;

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, DefaultStream meaning,
                       Location where) {
  return host_call("cudaMemcpy", [&] {
    return copy("cudaMemcpy", rows_at(to, bytes), rows_at(from, bytes), {bytes}, kind,
                streams().find(nullptr, meaning, current_device()), /*waits=*/true, where);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream, DefaultStream meaning, Location where) {
  return host_call("cudaMemcpyAsync", [&] {
    return copy("cudaMemcpyAsync", rows_at(to, bytes), rows_at(from, bytes), {bytes}, kind,
                streams().find(stream, meaning, current_device()), /*waits=*/false, where);
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                         size_t height, cudaMemcpyKind kind, DefaultStream meaning, Location where) {
  return host_call("cudaMemcpy2D", [&] {
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
    return copy("cudaMemcpy2D", rows_at(to, to_pitch), rows_at(from, from_pitch), {width, height}, kind,
                streams().find(nullptr, meaning, current_device()), /*waits=*/true, where);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream, DefaultStream meaning, Location where) {
  return host_call("cudaMemcpyPeerAsync", [&] {
    const AllocationPointer target = streams().memory.find(to), source = streams().memory.find(from);
    if (!target || !source || target->device != to_device || source->device != from_device)
      return cudaErrorInvalidValue;
    return copy("cudaMemcpyPeerAsync", rows_at(to, bytes), rows_at(from, bytes), {bytes}, cudaMemcpyDefault,
                streams().find(stream, meaning, current_device()), /*waits=*/false, where);
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes, DefaultStream meaning, Location where) {
  return host_call("cudaMemset", [&] {
    return fill("cudaMemset", rows_at(to, bytes), static_cast<unsigned>(value), {bytes},
                streams().find(nullptr, meaning, current_device()), where);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream, DefaultStream meaning,
                            Location where) {
  return host_call("cudaMemsetAsync", [&] {
    return fill("cudaMemsetAsync", rows_at(to, bytes), static_cast<unsigned>(value), {bytes},
                streams().find(stream, meaning, current_device()), where);
  });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height,
                         DefaultStream meaning, Location where) {
  return host_call("cudaMemset2D", [&] {
    if (width > pitch) return cudaErrorInvalidValue;
    return fill("cudaMemset2D", rows_at(to, pitch), static_cast<unsigned>(value), {width, height},
                streams().find(nullptr, meaning, current_device()), where);
  });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream, DefaultStream meaning, Location where) {
  return host_call("cudaMemset2DAsync", [&] {
    if (width > pitch) return cudaErrorInvalidValue;
    return fill("cudaMemset2DAsync", rows_at(to, pitch), static_cast<unsigned>(value), {width, height},
                streams().find(stream, meaning, current_device()), where);
  });
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent, DefaultStream meaning,
                         Location where) {
  return host_call("cudaMemset3D", [&] {
    if (extent.width > to.pitch || extent.height > to.ysize) return cudaErrorInvalidValue;
    for (size_t slice = 0; slice < extent.depth; ++slice) {
      const cudaError_t error =
          fill("cudaMemset3D", {at(to, {}, slice), to.pitch, nullptr}, static_cast<unsigned>(value),
               {extent.width, extent.height}, streams().find(nullptr, meaning, current_device()), where);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t stream, DefaultStream meaning,
                              Location where) {
  return host_call("cudaMemcpy2DAsync", [&] {
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidValue;
    return copy("cudaMemcpy2DAsync", rows_at(to, to_pitch), rows_at(from, from_pitch), {width, height}, kind,
                streams().find(stream, meaning, current_device()), /*waits=*/false, where);
  });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parts, DefaultStream meaning, Location where) {
  return copy_slices("cudaMemcpy3D", parts, nullptr, meaning, /*waits=*/true, where);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parts, cudaStream_t stream, DefaultStream meaning,
                              Location where) {
  return copy_slices("cudaMemcpy3DAsync", parts, stream, meaning, /*waits=*/false, where);
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes,
                           DefaultStream meaning, Location where) {
  return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, nullptr, meaning, where);
}

namespace cpu_device {

cudaError_t copy_to_symbol(const char* call, const void* symbol, size_t size, const void* from, size_t bytes,
                           size_t offset, cudaMemcpyKind kind, bool waits, cudaStream_t stream,
                           DefaultStream meaning, Location where) {
  auto* const to = static_cast<std::byte*>(symbol_address(symbol, size, where)) + offset;
  return host_call(call, [&] {
    return copy(call, rows_at(to, bytes), rows_at(from, bytes), {bytes}, kind,
                streams().find(stream, meaning, current_device()), waits, where);
  });
}

cudaError_t copy_from_symbol(const char* call, void* to, const void* symbol, size_t size, size_t bytes,
                             size_t offset, cudaMemcpyKind kind, bool waits, cudaStream_t stream,
                             DefaultStream meaning, Location where) {
  const auto* const from = static_cast<const std::byte*>(symbol_address(symbol, size, where)) + offset;
  return host_call(call, [&] {
    return copy(call, rows_at(to, bytes), rows_at(from, bytes), {bytes}, kind,
                streams().find(stream, meaning, current_device()), waits, where);
  });
}

cudaError_t fill_elements(const cudaMemsetParams& wanted, cudaStream_t stream, Location where) {
  const bool is_whole = wanted.elementSize == 1 || wanted.elementSize == 2 || wanted.elementSize == 4;
  const size_t bytes = wanted.width * wanted.elementSize;
  if (!is_whole || (wanted.height > 1 && wanted.pitch < bytes)) return cudaErrorInvalidValue;
  return fill("cudaGraphAddMemsetNode", rows_at(wanted.dst, wanted.pitch), wanted.value,
              {bytes, wanted.height}, streams().find(stream, DefaultStream::legacy, current_device()), where,
              wanted.elementSize);
}

std::string describe_changed_sources() { return changed_sources(); }

}  // namespace cpu_device
