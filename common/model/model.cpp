/// @file
/// The recurrence and its closed forms.
#include "common/model/model.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <string>

namespace ladder::model {
namespace {

void check_time(const char* name, double value) {
  if (std::isfinite(value) && value >= 0) return;
  std::ostringstream text;
  text << name << ": " << value << " is no time; it must be finite and at least 0";
  throw std::invalid_argument(text.str());
}

void check_at_least(const char* name, int value, int least) {
  if (value < least)
    throw std::invalid_argument(fmt::format("{}: {} is too few; it must be at least {}", name, value, least));
}

void check(const Pipeline& pipeline) {
  check_time("load", pipeline.load);
  check_time("compute", pipeline.compute);
  check_time("store", pipeline.store);
  if (pipeline.load_interval) check_time("load_interval", *pipeline.load_interval);
  check_at_least("slots", pipeline.slots, 1);
  check_at_least("staging_slots", pipeline.staging_slots, 1);
  if (pipeline.release == Release::after_next_wait && pipeline.slots < 2)
    throw std::invalid_argument(
        "release: after_next_wait needs at least 2 slots; the next tile has nowhere to land before the only "
        "one is free");
}

/// A loader that waits for each copy before it starts the next, and slots that are released at once.
bool is_simple(const Pipeline& pipeline) {
  return !pipeline.load_interval && pipeline.release == Release::after_compute;
}

double interval(const Pipeline& pipeline) { return pipeline.load_interval.value_or(pipeline.load); }

}  // namespace

std::vector<TileTimes> schedule(const Pipeline& pipeline, int tiles) {
  check(pipeline);
  check_at_least("tiles", tiles, 0);
  std::vector<TileTimes> times(static_cast<size_t>(tiles));
  const auto tile = [&](int i) -> const TileTimes& { return times[static_cast<size_t>(i)]; };
  for (int i = 0; i < tiles; ++i) {
    TileTimes& now = times[static_cast<size_t>(i)];

    // The copy waits for its turn and for a slot: that of the tile `slots` before it.
    double begin = i > 0 ? tile(i - 1).load.begin + interval(pipeline) : 0;
    if (i >= pipeline.slots) {
      begin = std::max(begin, tile(i - pipeline.slots).compute.end);
      if (pipeline.release == Release::after_next_wait)
        begin = std::max(begin, tile(i - pipeline.slots + 1).load.end);
    }
    now.load = {begin, begin + pipeline.load};

    // Compute waits for the tile, for itself, and for room to put the result.
    begin = now.load.end;
    if (i > 0) begin = std::max(begin, tile(i - 1).compute.end);
    if (i >= pipeline.staging_slots) begin = std::max(begin, tile(i - pipeline.staging_slots).store.end);
    now.compute = {begin, begin + pipeline.compute};

    begin = now.compute.end;
    if (i > 0) begin = std::max(begin, tile(i - 1).store.end);
    now.store = {begin, begin + pipeline.store};
  }
  return times;
}

Pipeline with_slots(Pipeline pipeline, int slots) {
  pipeline.slots = pipeline.staging_slots = slots;
  if (slots < 2) pipeline.release = Release::after_compute;
  return pipeline;
}

Pipeline ring_of(int slots, double load, double compute, Release release) {
  Pipeline pipeline{.load = load, .compute = compute};
  pipeline.load_interval = 0;
  pipeline.release = release;
  return with_slots(pipeline, slots);
}

double total_time(const Pipeline& pipeline, int tiles) {
  const std::vector<TileTimes> times = schedule(pipeline, tiles);
  return times.empty() ? 0 : times.back().store.end;
}

std::optional<double> closed_form(const Pipeline& pipeline, int tiles) {
  check(pipeline);
  check_at_least("tiles", tiles, 0);
  if (!is_simple(pipeline) && pipeline.store > 0) return std::nullopt;
  if (tiles == 0) return 0;
  const double alone = pipeline.load + pipeline.compute + pipeline.store;
  const int further = tiles - 1;
  if (is_simple(pipeline)) return alone + further * *time_per_tile(pipeline);

  // The longest chain of events either never waits for a slot, or waits for one as often as it can. At first
  // all slots are free: a late release is waited for from the second tile on.
  const double busiest = std::max(interval(pipeline), pipeline.compute);
  const bool late = pipeline.release == Release::after_next_wait;
  const int before_laps = late ? std::min(further, 1) : 0, in_laps = further - before_laps;
  const int lap = late ? pipeline.slots - 1 : pipeline.slots;
  const double time_of_lap = late ? pipeline.load : pipeline.load + pipeline.compute;
  const double waiting = in_laps / lap * time_of_lap + in_laps % lap * busiest;
  return alone + before_laps * busiest + std::max(in_laps * busiest, waiting);
}

std::optional<double> time_per_tile(const Pipeline& pipeline) {
  check(pipeline);
  const auto [load, compute, store, slots, staging_slots, load_interval, release] = pipeline;
  if (is_simple(pipeline)) {
    const double filled = slots == 1 ? load + compute : std::max(load, compute);
    const double emptied = staging_slots == 1 ? compute + store : std::max(compute, store);
    return std::max(filled, emptied);
  }
  if (store > 0) return std::nullopt;
  const double of_slots = release == Release::after_next_wait ? load / (slots - 1) : (load + compute) / slots;
  return std::max({interval(pipeline), compute, of_slots});
}

}  // namespace ladder::model
