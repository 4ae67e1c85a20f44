/// @file
/// Exercise 07.b: the time that no order of the steps can beat.
///
/// Each of some batches, all alike, is uploaded, goes through a kernel, and is downloaded. One kernel runs at
/// a time. Of two copy engines one uploads and the other downloads; a single one does both, in turn.
#pragma once
#include <algorithm>

namespace exercise {

/// How long the steps of one batch take.
struct Steps {
  int upload, kernel, download;
};

/// For each engine there are the steps that must come before its first one, all its own, and the steps that
/// must come after its last one. The time is that of the engine with the longest sum.
// Read docs/concepts/streams_and_copy_engines.md and 07_streams/measure/bound.hpp.
// >>> yours
constexpr int least_time(Steps one, int batches, int copy_engines) {
  const int sms = one.upload + batches * one.kernel + one.download;
  if (copy_engines == 1) return std::max(sms, batches * (one.upload + one.download));
  const int uploads = batches * one.upload + one.kernel + one.download;
  const int downloads = one.upload + one.kernel + batches * one.download;
  return std::max({sms, uploads, downloads});
}
// <<<

}  // namespace exercise
