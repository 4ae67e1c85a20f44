/// @file
/// Reads a record of parts, and adds them up.
#include "common/model/parts.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <utility>

#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"

namespace ladder::model {
namespace {

constexpr double kMultiplyAddsPerClock = 2048;
constexpr int kPanel = 64;

using Wanted = std::initializer_list<std::pair<const char*, const char*>>;

/// The median of the one row of a part that has these settings. @throws std::invalid_argument
double clocks_of(const Json& record, const std::string& part, const Wanted& wanted) {
  std::optional<double> found;
  std::string words = part;
  for (const auto& [name, value] : wanted) words += std::string(", ") + value;
  for (const Json& row : record.at("runs")) {
    const Json& settings = row.at("settings");
    const bool fits =
        row.at("part") == part && std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) {
          return settings.value(one.first, "") == one.second;
        });
    if (!fits) continue;
    if (found) throw std::invalid_argument("has several rows '" + words + "'");
    found = row.at("clocks").get<double>();
  }
  if (!found) throw std::invalid_argument("has no row '" + words + "'");
  return *found;
}

Parts parts_of(const Json& record) {
  const auto tile = [&](const char* size, const char* in_flight) {
    const auto from = [&](const char* where) {
      return clocks_of(record, "tile",
                       {{"size", size}, {"in_flight", in_flight}, {"rows", "whole lines"}, {"from", where}});
    };
    return (from("L2") + from("memory")) / 2;
  };
  const auto copy = [&](const char* way, const char* from) {
    return clocks_of(record, "copy",
                     {{"way", way}, {"size", "32 KB"}, {"blocks", "all SMs"}, {"from", from}});
  };
  const auto epilogue = [&](const char* size, const char* piece) {
    return clocks_of(record, "epilogue", {{"tile", size}, {"piece", piece}, {"blocks", "all SMs"}});
  };
  const auto product = [&](const char* wait) {
    return clocks_of(record, "product",
                     {{"m", "m 64"}, {"n", "n 128"}, {"wait", wait}, {"loads", "no loads"}, {"unusual", ""}});
  };
  Parts parts;
  parts.load_128 = tile("32 KB", "1 in flight");
  parts.load_256 = tile("48 KB", "1 in flight");
  parts.port_128 = tile("32 KB", "3 in flight");
  parts.port_256 = tile("48 KB", "3 in flight");
  parts.ask = clocks_of(record, "ask", {{"boxes", "1 x 16 KB + 2 x 8 KB"}});
  parts.through_registers = copy("through registers", "memory");
  parts.async_asked = copy("cp.async, asked for", "L2");
  parts.async_landed = copy("cp.async, landed", "memory");
  parts.hand_over = clocks_of(record, "hand-over", {{"arrivals", "1 thread arrives"}});
  parts.sync = clocks_of(record, "syncthreads", {{"threads", "256 threads"}});
  parts.fence_and_sync = epilogue("128 x 128", "fence and barrier");
  parts.drain = product("waited for") - product("in flight");
  parts.stage_128 = epilogue("128 x 128", "conversion and stmatrix");
  parts.stage_256 = epilogue("128 x 256", "conversion and stmatrix");
  parts.store_128 = epilogue("128 x 128", "store until read");
  parts.store_256 = epilogue("128 x 256", "store until read");
  parts.store_registers = epilogue("128 x 128", "stores from registers");
  parts.exchange =
      clocks_of(record, "exchange", {{"way", "st.async"}, {"size", "64 KB"}, {"cluster", "cluster of 4"}});
  parts.launch = clocks_of(record, "launch", {});
  return parts;
}

/// Conversion, stmatrix, fence and barrier of one panel of 64 columns; and its store.
struct Panel {
  double stage, store;
};
Panel panel_of(const Parts& parts) {
  // Of two panels and of four: what each further one adds. The first one's latency is the rest.
  const double stored = (parts.store_256 - parts.store_128) / 2;
  return {parts.stage_256 / 4 + parts.fence_and_sync, parts.store_128 - stored};
}

/// A panel is staged once the one before it has been read; nobody waits for the last store.
double clocks_of_panels(const Parts& parts, int count) {
  const auto [stage, store] = panel_of(parts);
  return count * stage + (count - 1) * store;
}

}  // namespace

Parts read_parts(const std::string& argument, const std::string& path) {
  const auto complain = [&](const std::string& what) {
    return std::invalid_argument(argument + " '" + path + "': " + what);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) throw complain("cannot be read");
  try {
    return parts_of(parse_json(file));
  } catch (const Json::exception& error) {
    throw complain("is no record of parts: " + one_line(error.what()));
  } catch (const std::invalid_argument& error) {
    throw complain(error.what());
  }
}

double product_clocks(int tile_n) { return double(kTileM) * tile_n * kTileK / kMultiplyAddsPerClock; }

Pipeline pipeline_of(const Parts& parts, const StepKind& kind) {
  const double product = product_clocks(kind.tile_n);
  const double load = kind.tile_n == 128 ? parts.load_128 : parts.load_256;
  const auto ring = [&](double landed, double compute, Release release = Release::after_compute) {
    return ring_of(kind.slots, landed, compute, release);
  };
  switch (kind.mover) {
    case Mover::registers:
      return ring(parts.through_registers + parts.fence_and_sync + parts.sync, product + parts.drain);
    case Mover::cp_async:
      // With one slot the tile must have been read before it is filled again: another barrier. With several
      // all warps ask for copies and multiply, in turn, and a slot is filled again once the next has landed.
      if (kind.slots == 1)
        return ring(parts.async_landed + parts.fence_and_sync + parts.sync, product + parts.drain);
      return ring(parts.async_landed + parts.fence_and_sync,
                  parts.async_asked + parts.fence_and_sync + product + parts.drain, Release::after_next_wait);
    case Mover::thread:
      return ring(parts.ask + load + parts.drain + parts.sync, product);
    case Mover::thread_behind:
      // From three slots on a slot is filled again one step later, and not before the other warpgroup has
      // finished, half a product later.
      if (kind.slots > 2)
        return ring(load + parts.hand_over + product / 2, product, Release::after_next_wait);
      return ring(parts.ask + load + parts.hand_over + parts.drain, product);
    case Mover::role:
      return ring(load + parts.hand_over + parts.drain, product);
  }
  throw std::logic_error("no such mover");
}

double clocks_of_step(const Parts& parts, const StepKind& kind) {
  const double product = product_clocks(kind.tile_n), alone = *time_per_tile(pipeline_of(parts, kind));
  if (kind.blocks_per_sm == 1) return alone;
  const bool copies = kind.mover == Mover::registers || kind.mover == Mover::cp_async;
  const double port = kind.mover == Mover::registers  ? 0
                      : kind.mover == Mover::cp_async ? parts.async_asked
                      : kind.tile_n == 128            ? parts.port_128
                                                      : parts.port_256;
  // Where all threads copy and multiply in turn, a block is at one place at a time, else a slot is.
  const double round = copies ? alone : alone * kind.slots;
  return std::max(product, alone / 2 + (product * product + port * port) / (4 * round));
}

const char* bound_of_step(const Parts& parts, const StepKind& kind) {
  if (clocks_of_step(parts, kind) <= product_clocks(kind.tile_n)) return "tensor cores";
  if (kind.slots == 1) return "load + compute";
  const Pipeline pipeline = pipeline_of(parts, kind);
  const bool turns = kind.mover == Mover::cp_async && *time_per_tile(pipeline) <= pipeline.compute;
  return turns ? "copy, then compute" : "load";
}

double clocks_of_epilogue(const Parts& parts, const StepKind& kind) {
  if (kind.blocks_per_sm > 1) return 0;
  if (kind.tile_n > 128) return clocks_of_panels(parts, kind.tile_n / kPanel);
  const bool staged = kind.mover == Mover::role || kind.mover == Mover::thread_behind;
  return staged ? parts.stage_128 + parts.fence_and_sync : parts.store_registers;
}

double clocks_of_exchange(const Parts& parts, const StepKind& kind) {
  const int panels = kind.tile_n / kPanel;
  return parts.exchange + clocks_of_panels(parts, panels / 2) - clocks_of_panels(parts, panels);
}

}  // namespace ladder::model
