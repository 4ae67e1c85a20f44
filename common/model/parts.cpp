/// @file
/// Reads a record of parts, and adds them up.
#include "common/model/parts.hpp"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <stdexcept>
#include <utility>

#include "common/host/base/json.hpp"
#include "common/host/base/text.hpp"

namespace ladder::model {
namespace {

constexpr double kMultiplyAddsPerClock = 2048;
constexpr int kPanel = 64;

using Wanted = std::initializer_list<std::pair<const char*, const char*>>;

/// The one row of a part that has these settings. @throws std::invalid_argument
const Json& row_of(const Json& record, const std::string& part, const Wanted& wanted) {
  const Json* found = nullptr;
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
    found = &row;
  }
  if (!found) throw std::invalid_argument("has no row '" + words + "'");
  return *found;
}

/// Its median.
double clocks_of(const Json& record, const std::string& part, const Wanted& wanted) {
  return row_of(record, part, wanted).at("clocks");
}

double in_ns(double clocks, double mhz) { return clocks / mhz * 1000; }

/// Loads of `size` by TMA, with three, two and one in flight.
Paces loads_of_tiles(const Json& record, const char* size) {
  constexpr double kPause = 600;  // clocks between two loads, with one in flight (loads_gpu.cu)
  const double mhz = record.at("max_clock_mhz");  // the GPU does nothing else
  Paces paces;
  for (const int in_flight : {3, 2, 1}) {
    const std::string words = std::to_string(in_flight) + " in flight";
    const double clocks = clocks_of(
        record, "tile",
        {{"size", size}, {"in_flight", words.c_str()}, {"rows", "whole lines"}, {"from", "memory"}});
    paces.push_back({in_ns(clocks + (in_flight == 1 ? kPause : 0), mhz), in_ns(in_flight * clocks, mhz)});
  }
  return paces;
}

/// Loads of 32 KB by TMA at a steady pace.
Paces steady_loads(const Json& record) {
  const double mhz = record.at("max_clock_mhz");
  Paces paces;
  for (const char* every : {"600", "700", "800", "1000", "1200", "1400", "1700", "2000", "2400"}) {
    const auto ns = [&](const char* what) {
      return in_ns(
          clocks_of(record, "paced", {{"way", "TMA"}, {"size", "32 KB"}, {"every", every}, {"what", what}}),
          mhz);
    };
    paces.push_back({ns("interval"), ns("landed")});
  }
  return paces;
}

/// Copies by threads: two blocks of an SM, and one. They come no faster than loads by TMA.
Paces copies_of_blocks(const Json& parts, const Json& paces, const char* way, const char* of_one,
                       const Paces& by_tma) {
  const auto of_two = [&](const char* what) {
    const Wanted wanted = {
        {"way", way}, {"size", "32 KB"}, {"rows", "whole lines"}, {"every", "0"}, {"what", what}};
    return in_ns(clocks_of(paces, "paced", wanted), paces.at("max_clock_mhz"));
  };
  const double one =
      in_ns(clocks_of(parts, "copy",
                      {{"way", of_one}, {"size", "32 KB"}, {"blocks", "all SMs"}, {"from", "memory"}}),
            parts.at("max_clock_mhz"));
  const double two = of_two("landed");
  return {{by_tma.front().interval_ns, two}, {of_two("interval"), two}, {one, one}};
}

Parts parts_of(const Json& record) {
  const auto epilogue = [&](const char* size, const char* piece) {
    return clocks_of(record, "epilogue", {{"tile", size}, {"piece", piece}, {"blocks", "all SMs"}});
  };
  const auto product = [&](const char* wait) {
    return clocks_of(record, "product",
                     {{"m", "m 64"}, {"n", "n 128"}, {"wait", wait}, {"loads", "no loads"}, {"unusual", ""}});
  };
  Parts parts;
  parts.load_128 = loads_of_tiles(record, "32 KB");
  parts.load_256 = loads_of_tiles(record, "48 KB");
  parts.async_asked =
      clocks_of(record, "copy",
                {{"way", "cp.async, asked for"}, {"size", "32 KB"}, {"blocks", "all SMs"}, {"from", "L2"}});
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

/// What copies through registers and products take from each other. Alone a copy keeps its time; what it
/// takes longer beside products is the multiprocessor's own, in clocks.
void read_path(const Json& record, Parts& parts) {
  const auto row = [&](const char* what, const char* beside) -> const Json& {
    return row_of(record, "path", {{"way", "through registers"}, {"what", what}, {"beside", beside}});
  };
  const auto clocks = [](const Json& of) { return of.at("clocks").get<double>(); };
  const Json &copy = row("a copy", "beside products"), &alone = row("a copy", "alone");
  const double product = clocks(row("a product", "beside copies")), mhz = copy.at("mhz");
  const double products_met = clocks(copy) / product;
  const double longer_ns = in_ns(clocks(copy), mhz) - in_ns(clocks(alone), alone.at("mhz"));
  parts.copy_meets = longer_ns * mhz / 1000 / products_met;
  parts.product_meets = product - clocks(row("a product", "alone"));
}

/// use(record of the file), with messages that name the file.
template <class Use>
void read(const std::string& argument, const std::string& path, const Use& use) {
  const auto complain = [&](const std::string& what) {
    return std::invalid_argument(argument + " '" + path + "': " + what);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) throw complain("cannot be read");
  try {
    use(parse_json(file));
  } catch (const Json::exception& error) {
    throw complain("is no record of parts: " + one_line(error.what()));
  } catch (const std::invalid_argument& error) {
    throw complain(error.what());
  }
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

Parts read_parts(const std::string& argument, const PartRecords& records) {
  Parts parts;
  read(argument, records.parts, [&](const Json& record) {
    parts = parts_of(record);
    read(argument, records.paces, [&](const Json& paces) {
      const auto copies = [&](const char* way, const char* of_one) {
        return copies_of_blocks(record, paces, way, of_one, parts.load_128);
      };
      parts.async = copies("cp.async", "cp.async, landed");
      parts.registers = copies("through registers", "through registers");
      parts.load_steady = steady_loads(paces);
    });
  });
  read(argument, records.path, [&](const Json& path) { read_path(path, parts); });
  return parts;
}

double product_clocks(int tile_n) { return double(kTileM) * tile_n * kTileK / kMultiplyAddsPerClock; }

double landed_ns(const Paces& paces, double interval_ns) {
  if (interval_ns <= paces.front().interval_ns) return paces.front().landed_ns;
  for (size_t i = 1; i < paces.size(); ++i) {
    const Pace &faster = paces[i - 1], &slower = paces[i];
    if (interval_ns <= slower.interval_ns)
      return faster.landed_ns + (slower.landed_ns - faster.landed_ns) * (interval_ns - faster.interval_ns) /
                                    (slower.interval_ns - faster.interval_ns);
  }
  return paces.back().landed_ns;
}

Pipeline pipeline_of(const Parts& parts, const StepKind& kind, double load) {
  const double product = product_clocks(kind.tile_n);
  const auto ring = [&](double landed, double compute, Release release = Release::after_compute) {
    return ring_of(kind.slots, landed, compute, release);
  };
  switch (kind.mover) {
    case Mover::registers: {
      // A block's copy meets one product of the other block in each step, and its product the other's copy.
      const bool meets = kind.blocks_per_sm > 1;
      return ring(load + (meets ? parts.copy_meets : 0) + parts.fence_and_sync + parts.sync,
                  product + parts.drain + (meets ? parts.product_meets : 0));
    }
    case Mover::cp_async:
      // With one slot the tile must have been read before it is filled again: another barrier. With several
      // all warps ask for copies and multiply, in turn, and a slot is filled again once the next has landed.
      if (kind.slots == 1) return ring(load + parts.fence_and_sync + parts.sync, product + parts.drain);
      return ring(load + parts.fence_and_sync,
                  parts.async_asked + parts.fence_and_sync + product + parts.drain, Release::after_next_wait);
    case Mover::thread:
      return ring(load + parts.drain + parts.sync, product);
    case Mover::thread_behind:
      // From three slots on a slot is filled again one step later, and not before the other warpgroup has
      // finished, half a product later.
      if (kind.slots > 2)
        return ring(load + parts.hand_over + product / 2, product, Release::after_next_wait);
      [[fallthrough]];
    case Mover::role:
      return ring(load + parts.hand_over + parts.drain, product);
  }
  throw std::logic_error("no such mover");
}

namespace {

const Paces& loads_of(const Parts& parts, const StepKind& kind) {
  switch (kind.mover) {
    case Mover::registers:
      return parts.registers;
    case Mover::cp_async:
      return parts.async;
    default:
      if (kind.tile_n != 128) return parts.load_256;
      // Each block has one load on its way, and the two ask at moments of their own. A block with more slots
      // keeps several on their way, as those that load_128 was measured with.
      return kind.blocks_per_sm > 1 && kind.slots == 1 ? parts.load_steady : parts.load_128;
  }
}

/// What a load takes, in clocks, where an SM begins a step every `interval` clocks.
double load_at(const Parts& parts, const StepKind& kind, double interval) {
  const double clocks_per_ns = kind.mhz / 1000;
  return landed_ns(loads_of(parts, kind), interval / clocks_per_ns) * clocks_per_ns;
}

/// From one step of the SM to the next, if loads came every `interval` clocks.
double step_at(const Parts& parts, const StepKind& kind, double interval) {
  const double product = product_clocks(kind.tile_n);
  const double alone = *time_per_tile(pipeline_of(parts, kind, load_at(parts, kind, interval)));
  if (kind.blocks_per_sm == 1) return alone;
  return std::max(product, alone / 2 + product * product / (4 * alone));
}

}  // namespace

double clocks_of_step(const Parts& parts, const StepKind& kind) {
  // Where the step that a pace allows has that pace. At the fastest pace steps are slower than loads come,
  // else loads set the pace; at the slowest step of all they are not.
  const Paces& paces = loads_of(parts, kind);
  double fast = paces.front().interval_ns * kind.mhz / 1000, slow = 0;
  for (const Pace& pace : paces)
    slow = std::max(slow, step_at(parts, kind, pace.interval_ns * kind.mhz / 1000));
  if (step_at(parts, kind, fast) <= fast) return fast;
  constexpr double kCloseEnough = 0.01;
  while (slow - fast > kCloseEnough) {
    const double middle = (slow + fast) / 2;
    (step_at(parts, kind, middle) > middle ? fast : slow) = middle;
  }
  return slow;
}

double clocks_of_load(const Parts& parts, const StepKind& kind) {
  return load_at(parts, kind, clocks_of_step(parts, kind));
}

const char* bound_of_step(const Parts& parts, const StepKind& kind) {
  const double step = clocks_of_step(parts, kind), product = product_clocks(kind.tile_n);
  if (step < product + 1) return "tensor cores";
  if (kind.slots == 1) return "load + compute";
  const Pipeline pipeline = pipeline_of(parts, kind, load_at(parts, kind, step));
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
