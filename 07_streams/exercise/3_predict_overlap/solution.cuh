/// @file
/// Exercise 07.3: predict how long a pipeline takes, and how much memory it needs.
///
/// kBatches batches are uploaded, go through a kernel, and are downloaded. The times of the three steps are
/// given. Each engine has one stream. So it does one thing at a time, in the order in which the host has
/// queued it: a step that must wait holds up what is queued behind it.
///
///     step       may begin when                                            engine
///     upload     the batch that had the slot before has been downloaded    copy engine
///     kernel     its upload has ended                                      SMs
///     download   its kernel has ended                                      copy engine
///
/// Batch b has slot b % slots of device memory. Queueing takes the host no time. Predict five durations and
/// a number of slots; the check runs all of it on the CPU device, whose streams have such a clock.
#pragma once

namespace exercise {

constexpr int kBatches = 10;
constexpr double kUpload = 3, kKernel = 4, kDownload = 2;  // units of time, one batch

// Read docs/concepts/streams_and_copy_engines.md and common/cuda/cuda_handles.hpp.
// >>> yours
/// All steps of all batches in one stream.
constexpr double kOneStream = 90;
/// A stream for each step; an engine for uploads, another for downloads; slots enough.
constexpr double kTwoCopyEngines = 45;
/// The fewest slots with which that still takes only kTwoCopyEngines.
constexpr int kSlots = 3;
/// kTwoCopyEngines with one slot fewer than kSlots.
constexpr double kOneSlotFewer = 49;
/// One engine, and one stream, for all copies; slots enough. The host queues upload 0, kernel 0, download 0,
/// upload 1, ...
constexpr double kOneCopyEngine = 90;
/// The same, but download b is queued after upload b + 1: upload 0, upload 1, download 0, upload 2, download
/// 1, ...
constexpr double kUploadsAhead = 53;
// <<<

}  // namespace exercise
