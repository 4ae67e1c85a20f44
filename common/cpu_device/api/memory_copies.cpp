/// @file
/// Copies and fills: which engine they use, when they read their source, and when the host waits for them.
#include <fmt/core.h>
#include <cstring>
#include <memory>

#include "common/cpu_device/api/host_calls.hpp"
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
    if (engine.memory.is_freed(rows.begin))
      fail(std::string(function) + " on " + stream.name + " uses memory after its cudaFreeAsync");
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

cudaError_t copy(const char* function, Rows to, Rows from, Extent extent, cudaMemcpyKind kind,
                 CUstream_st* stream, bool waits, Location where) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!extent.bytes()) return cudaSuccess;
  if (!to.begin || !from.begin || kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return cudaErrorInvalidValue;
  if (waits && stream->capture) return cudaErrorStreamCaptureUnsupported;
  look_up(to, extent, /*write=*/true, function, *stream, where);
  look_up(from, extent, /*write=*/false, function, *stream, where);
  if (contradicts(kind, to, from)) return cudaErrorInvalidValue;
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

cudaError_t fill(const char* function, void* to, int value, size_t bytes, CUstream_st* stream,
                 Location where) {
  if (!stream) return cudaErrorInvalidResourceHandle;
  if (!bytes) return cudaSuccess;
  if (!to) return cudaErrorInvalidValue;
  if (stream->is_legacy && !streams().captures.empty()) return cudaErrorStreamCaptureImplicit;
  Rows rows = rows_at(to, bytes);
  const Extent extent{bytes};
  look_up(rows, extent, /*write=*/true, function, *stream, where);
  Work work{"memset", std::to_string(bytes) + " bytes", where};
  work.us = static_cast<double>(bytes) / kStreamModel.memset;
  note(work, rows, extent, /*write=*/true);
  if (stream->is_legacy) work.returns_early = kFilledLater;
  work.run = [to, value, bytes](Operation&) { std::memset(to, value, bytes); };
  streams().enqueue(*stream, std::move(work));
  return cudaSuccess;
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
    return fill("cudaMemset", to, value, bytes, streams().find(nullptr, meaning, current_device()), where);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream, DefaultStream meaning,
                            Location where) {
  return host_call("cudaMemsetAsync", [&] {
    return fill("cudaMemsetAsync", to, value, bytes, streams().find(stream, meaning, current_device()),
                where);
  });
}
