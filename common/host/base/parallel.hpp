/// @file
/// A loop spread over the cores of the host.
#pragma once
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace ladder {

/// Calls `work(begin, end)` for parts of [0, count), one for each core, each at least `smallest_part` long.
/// `work` must not throw.
template <class Work>
void parallel_for(int64_t count, int64_t smallest_part, const Work& work) {
  const int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  const int64_t parts = std::clamp<int64_t>(count / std::max<int64_t>(smallest_part, 1), 1, cores);
  std::vector<std::thread> threads;
  for (int64_t part = 1; part < parts; ++part)
    threads.emplace_back(
        [&work, count, parts, part] { work(count * part / parts, count * (part + 1) / parts); });
  work(int64_t{0}, count / parts);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ladder
