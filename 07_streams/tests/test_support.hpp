/// @file
/// What this lesson's tests share: a pipeline of given sizes with weights of small integers.
#pragma once
#include <vector>

#include "07_streams/pipeline.hpp"
#include "07_streams/program/levels.hpp"
#include "common/host/problem/lesson_registry.hpp"
#include "common/testing/gemm_checks.hpp"

namespace lesson07 {

constexpr uint64_t kTestSeed = 7;

/// Ends the test case where no lesson runs.
inline void skip_without_device() { ladder::testing::skip_unless_runnable(*ladder::all_lessons().front()); }

/// All that run_batches takes. The kernel is the one that an emulator runs fastest: these tests are of what
/// stands around it.
struct TestRun {
  TestRun(std::vector<int> rows, int n, int k, int streams, int slots, size_t pool_bytes = 0)
      : batches{n, k, std::move(rows)},
        pipeline(batches, streams, slots, pool_bytes),
        host_weights(size_t(k) * n),
        schedule{streams, false},
        kernel(levels().front().kernel) {
    fill_integers(host_weights.data(), host_weights.size(), kTestSeed);
  }

  /// With integers in every batch. @throws what run_batches throws
  void run() { run(IntegerData(batches, host_weights.data(), kTestSeed)); }
  void run(const Data& data) {
    const Weights weights(host_weights, batches.k, batches.n);
    run_batches(batches, data, weights, kernel, pipeline, schedule);
  }

  Batches batches;
  Pipeline pipeline;
  PinnedBuffer<bf16> host_weights;
  Schedule schedule;
  Kernel kernel;
};

/// `count` batches, ragged and around the height of a tile.
inline std::vector<int> ragged_rows(int count) {
  constexpr int kRows[] = {65, 1, 64, 130, 63, 17};
  std::vector<int> rows;
  for (int b = 0; b < count; ++b) rows.push_back(kRows[b % 6]);
  return rows;
}

}  // namespace lesson07
