/// @file
/// Exercise 07.a: what must come before an upload, and what sees to it.
///
/// The upload, the kernel and the download of batch b are in stream b % streams, and use slot b % slots of
/// device memory. An upload overwrites what an earlier batch has left in the slot, so that batch must have
/// been downloaded.
#pragma once

namespace exercise {

/// What makes one operation come after another: that both are in one stream, or an event between two streams.
enum class Order { nothing, stream, event };

struct Before {
  int batch;  ///< that had the slot before; -1 if none had
  Order by;   ///< an event only where the order of one stream is not enough; nothing with -1
};

/// What must have been downloaded before batch `batch` is uploaded.
// Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
// >>> yours
constexpr Before before_upload(int batch, int streams, int slots) {
  if (batch < slots) return {-1, Order::nothing};
  const int before = batch - slots;
  return {before, before % streams == batch % streams ? Order::stream : Order::event};
}
// <<<

}  // namespace exercise
