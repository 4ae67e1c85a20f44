/// @file
/// Exercise 07.3: predict how long a pipeline takes, and how much memory it needs.
///
/// kBatches batches are uploaded, go through a kernel, and are downloaded. The times of the three steps are
/// given. An engine does one thing at a time, and in the order in which the host has queued it: a step whose
/// turn has come, and that must wait for something, holds up what is queued for the same engine after it.
///
///     step       may begin when                                            engine
///     upload     the batch that had the slot before has been downloaded    copy engine
///     kernel     its upload has ended                                      SMs
///     download   its kernel has ended                                      copy engine
///
/// Batch b has slot b % slots of device memory. Queueing takes the host no time. Write five times and a
/// number of slots; the check runs all of it on the CPU device, whose streams have such a clock.
#pragma once

namespace exercise {

constexpr int kBatches = 10;
constexpr double kUpload = 3, kKernel = 4, kDownload = 2;  // units of time, one batch

// Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
// >>> yours
/// All steps of all batches in one stream.
constexpr double kOneStream = 0;
/// A stream for each step; an engine for uploads, another for downloads; slots enough.
constexpr double kTwoCopyEngines = 0;
/// The fewest slots with which kTwoCopyEngines takes no longer.
constexpr int kSlots = 0;
/// kTwoCopyEngines with one slot fewer than kSlots.
constexpr double kOneSlotFewer = 0;
/// One engine for all copies, slots enough. The host queues upload 0, kernel 0, download 0, upload 1, ...
constexpr double kOneCopyEngine = 0;
/// The same, but download b is queued after upload b + 1: upload 0, upload 1, download 0, upload 2, download
/// 1, ...
constexpr double kUploadsAhead = 0;
// <<<

}  // namespace exercise
