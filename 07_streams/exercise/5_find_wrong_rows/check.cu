/// @file
/// The check of exercise 07.5: few and many batches, by every schedule, each with a different line; and
/// batches that overlap.
#include EXERCISE

#include "07_streams/pinned_ring.hpp"
#include "common/exercise/check.hpp"

namespace {

using exercise::kElements;
using exercise::kLanes;
using exercise::Line;
using Pinned = lesson07::PinnedBuffer<float>;

/// Lines that differ so much that each value identifies its batch.
std::vector<Line> lines_of(int count) {
  std::vector<Line> lines;
  for (int batch = 0; batch < count; ++batch) lines.push_back({1.0f + batch, 100.0f * (1 + batch)});
  return lines;
}

/// The batch whose line gives y of x; -1: none.
int batch_of(float x, float y, const std::vector<Line>& lines) {
  for (size_t batch = 0; batch < lines.size(); ++batch)
    if (lines[batch].scale * x + lines[batch].offset == y) return static_cast<int>(batch);
  return -1;
}

/// @throws NotYet unless y is right
void run(int count) {
  const std::vector<Line> lines = lines_of(count);
  const auto values = ladder::exercise::small_integers<float>(size_t(count) * kElements, 1);
  Pinned x(values.size());
  std::copy(values.begin(), values.end(), x.data());
  std::vector<float> expected;
  for (size_t i = 0; i < values.size(); ++i)
    expected.push_back(lines[i / kElements].scale * values[i] + lines[i / kElements].offset);
  ladder::exercise::Output<float, Pinned> y("y", values.size());
  {
    std::array<exercise::Lane, kLanes> lanes;
    exercise::run({x.data(), y.data(), lines}, lanes);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int batch = static_cast<int>(i / kElements), other = batch_of(values[i], y.data()[i], lines);
    if (other == batch || other < 0) continue;
    throw ladder::exercise::NotYet(
        fmt::format("batch {} of {} is wrong: it was computed with the scale and the offset of batch {}. "
                    "Which memory that its kernel reads has changed since it was queued?",
                    batch, count, other));
  }
  y.expect_equal(expected);
}

void check() {
  for (const int count : {1, kLanes, kLanes + 1, 3 * kLanes + 1})
    ladder::exercise::on_every_schedule([&] { run(count); });

  constexpr int kBatches = 12;
  const auto one = ladder::exercise::counted_in_streams([] { run(1); });
  const auto all = ladder::exercise::counted_in_streams([] { run(kBatches); });
  if (!all) return;
  ladder::exercise::expect(all->us < 0.6 * kBatches * one->us,
                           fmt::format("y is right, but {} batches take {:.1f} times as long as one: which "
                                       "waits of the host are unnecessary?",
                                       kBatches, all->us / one->us));
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check); }
