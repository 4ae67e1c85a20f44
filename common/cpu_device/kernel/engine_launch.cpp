/// @file
/// Spreads the clusters of a launch over OS threads and collects what they did.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <utility>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/from_source/kernel_declaration.hpp"
#include "common/cpu_device/kernel/from_source/shared_variables.hpp"
#include "common/cpu_device/kernel/reports/array_bounds.hpp"
#include "common/cpu_device/kernel/reports/launch_shape.hpp"
#include "common/cpu_device/kernel/reports/long_turns.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/kernel/tensor_map.hpp"
#include "common/cpu_device/launch_progress.hpp"
#include "common/cpu_device/observe/hidden_memory.hpp"

namespace cpu_device {
namespace {

constexpr unsigned kMaxThreadsPerBlock = 1024;
constexpr size_t kMaxSharedBytes = 227 * 1024;
constexpr unsigned kMaxClusterBlocks = 8;  ///< of a launch that does not ask for more
/// Each stack and its guard page are two mappings; the system allows about 65,000 in a process.
constexpr uint64_t kMaxStacks = 24 * 1024;

Options& current_options() {
  static Options options;
  return options;
}

struct LaunchRecord {
  Counters counters;
  std::vector<Span> trace;
  std::vector<MbarrierRecord> mbarriers;
  std::vector<unsigned> registers;
  const void* kernel = nullptr;
};
thread_local LaunchRecord last_record;

/// Of this process. Several host threads may launch; then it is about one of them.
struct RunningLaunch {
  std::mutex mutex;
  LaunchProgress state;
  std::chrono::steady_clock::time_point begin;
  std::atomic<uint64_t> blocks_done = 0;
};
RunningLaunch& running_launch() {
  static auto& launch = *new RunningLaunch;
  return launch;
}

/// While it lives, a launch runs.
struct LaunchRuns {
  explicit LaunchRuns(const KernelLaunch& kernel) {
    RunningLaunch& running = running_launch();
    const std::lock_guard<std::mutex> lock(running.mutex);
    running.state = {running.state.launches + 1, true, kernel.name, kernel.grid.count()};
    running.begin = std::chrono::steady_clock::now();
    running.blocks_done = 0;
  }
  ~LaunchRuns() {
    const std::lock_guard<std::mutex> lock(running_launch().mutex);
    running_launch().state.runs = false;
  }
  LaunchRuns(const LaunchRuns&) = delete;
};

std::mutex unwritten_read_mutex;
std::string first_unwritten_read;  ///< since somebody asked last
/// The same.
struct Work {
  bool multiplies = false, has_multiplied_before = false, stages = false, is_known = false;
  MovedTiles moved_tiles;
  unsigned launches = 0;
  // Of the last one:
  KernelLaunch kernel;
  std::shared_ptr<GridOrder> grid_order;  ///< null where it was not checked
  std::shared_ptr<SharedLayout> layout;
  std::vector<RaceChecker::SiteRange> ranges;  ///< of its first block
};
Work work_of_kernels;
Work work_taken;  ///< of the launches before take_work_of_kernels()
MovedTiles& moved_tiles_taken = work_taken.moved_tiles;

/// Of these, if it is one.
std::string own_place_of(const std::vector<Location>& all) {
  std::string place;
  for (const Location& where : all) {
    const std::string own = own_place(where);
    if (!place.empty() && place != own) return "";
    place = own;
  }
  return place;
}

std::string describe_staging() { return own_place_of(moved_tiles_taken.staged_at); }

std::string zero_copies() {
  const Unobserved unobserved;
  std::vector<Location> never_read;
  for (const auto& [where, reads] : moved_tiles_taken.copied_at)
    if (!reads) never_read.push_back(where);
  const std::string place = own_place_of(never_read);
  return never_read.empty()
             ? ""
             : "each cp.async" + (place.empty() ? " of several lines" : " at " + place) +
                   " filled all its bytes with zeros and read none: is its condition inverted? (zfill counts "
                   "the bytes that become zero, PTX's source size those that are read)";
}

std::string stored_twice(const void* matrix, int columns) {
  constexpr int kElementBytes = 2;
  const Unobserved unobserved;
  const bool is_known = work_taken.launches == 1 && work_taken.grid_order;
  const auto* const twice = is_known ? work_taken.grid_order->stored_twice() : nullptr;
  const auto row_of = [&](const std::byte* address) {
    return static_cast<long long>((address - static_cast<const std::byte*>(matrix)) / kElementBytes /
                                  columns);
  };
  if (!twice || twice->first < static_cast<const std::byte*>(matrix)) return "";
  const auto& [x, y, z] = twice->block;
  const char* const parts = twice->are_warpgroups ? "warpgroup" : "warp";
  return print("%ss %u and %u of block (%u,%u,%u) both store elements of rows %lld to %lld of C", parts,
               twice->parts[0], twice->parts[1], x, y, z, row_of(twice->first), row_of(twice->last)) +
         print(" (%s): does %s %u begin too close to %s %u, in rows or in columns?", twice->place.c_str(),
               parts, twice->parts[1], parts, twice->parts[0]);
}

/// ", of boxes of 16 rows and 64 columns", if all TMA stores have such; else empty.
std::string sent_boxes() {
  const auto& all = moved_tiles_taken.boxes;
  const auto first = std::find_if(all.begin(), all.end(), [](const auto& box) { return !box.is_load; });
  if (first == all.end()) return "";
  const bool are_alike = std::all_of(first, all.end(), [&](const auto& box) {
    return box.is_load || (box.rows == first->rows && box.columns == first->columns);
  });
  return are_alike ? print(", of boxes of %d rows and %d columns", first->rows, first->columns) : "";
}

std::string unsent_sums() {
  const Unobserved unobserved;
  const MovedTiles& moved = moved_tiles_taken;
  const uint32_t unsent = moved.staging_warps & ~moved.read_warps, senders = moved.storing_warps;
  if (work_taken.launches != 1 || !unsent || !moved.read_warps) return "";
  const auto at = [](const std::vector<Location>& all) {
    const std::string place = own_place_of(all);
    return place.empty() ? "" : " (" + place + ")";
  };
  const auto are_several = [](uint32_t warps) { return (warps & (warps - 1)) != 0; };
  const std::string text = "no TMA store reads what " + names_of_warps(unsent) +
                           (are_several(unsent) ? " stage" : " stages") + at(moved.staged_at);
  if (unsent & senders)
    return text + ", though " + names_of_warps(unsent & senders) +
           (are_several(unsent & senders) ? " issue" : " issues") + " some" + at(moved.stored_at) +
           ": does each begin at the strip of its own warp?";
  return text + ", and only " + names_of_warps(senders) + (are_several(senders) ? " issue" : " issues") +
         " any" + at(moved.stored_at) +
         (senders & ~moved.staging_warps ? sent_boxes() + ": do they send only a part of what is staged?"
                                         : ": must one thread of each warp send its strip?");
}

std::string describe_products() {
  const std::vector<Location>& all = moved_tiles_taken.multiplied_at;
  const bool is_one = std::all_of(all.begin(), all.end(), [&](const Location& one) { return one == all[0]; });
  return all.empty() ? "" : is_one ? "wgmma at " + to_string(all[0]) : "wgmma";
}

bool warpgroups_share_operands() {
  return moved_tiles_taken.shares_operands && !moved_tiles_taken.has_operands_apart;
}

std::array<unsigned, 2> offsets_of_descriptors(bool has_k_contiguous) {
  const auto& all = moved_tiles_taken.offsets[has_k_contiguous];
  return all.size() == 1 ? *all.begin() : std::array<unsigned, 2>{~0u, ~0u};
}

std::string unread_fills() { return moved_tiles_taken.unread_fills; }

std::string left_array() {
  const Unobserved unobserved;
  if (!work_taken.layout) return "";
  SharedLayout& layout = *work_taken.layout;
  for (const RaceChecker::SiteRange& one : work_taken.ranges) {
    if (one.what != "store" && one.what != "load") continue;  // an operation may take other operands, too
    if (std::string text = explain_left_array(
            layout, layout.end(), {own_line(one.where), one.what, one.writes, one.first, one.last});
        !text.empty())
      return text;
  }
  return "";
}

std::string explain_block_of_launch() {
  return work_taken.launches == 1 ? explain_block(work_taken.kernel) : "";
}

std::string launched_at() { return place_of_launch(work_taken.kernel); }

bool find_writer(const void* address, unsigned (&block)[3]) {
  Uint3 index;
  if (!work_taken.grid_order ||
      !work_taken.grid_order->find_writer(static_cast<const std::byte*>(address), index))
    return false;
  block[0] = index.x, block[1] = index.y, block[2] = index.z;
  return true;
}

std::vector<WorkOfKernels::MovedBox> moved_boxes() {
  const bool are_known = work_taken.launches == 1 && !moved_tiles_taken.has_too_many_boxes;
  return are_known ? moved_tiles_taken.boxes : std::vector<WorkOfKernels::MovedBox>();
}

std::string exchanged_store(const void* matrix, int rows, int columns,
                            const std::function<bool(int row, int column)>& is_unwritten) {
  const Unobserved unobserved;
  const std::vector<WorkOfKernels::MovedBox> boxes = moved_boxes();
  const auto is_inside = [&](int row, int column) {
    return row >= 0 && row < rows && column >= 0 && column < columns;
  };
  const WorkOfKernels::MovedBox* first = nullptr;
  std::vector<bool> is_explained(static_cast<size_t>(rows) * static_cast<size_t>(columns));
  for (const auto& box : boxes) {
    // A box that begins inside has stored something, unlike what its thread meant.
    if (box.is_load || box.matrix != matrix || is_inside(box.row, box.column) ||
        !is_inside(box.column, box.row))
      continue;
    if (!first) first = &box;
    for (int row = box.column; row < std::min(box.column + box.rows, rows); ++row)
      for (int column = box.row; column < std::min(box.row + box.columns, columns); ++column)
        is_explained[static_cast<size_t>(row) * static_cast<size_t>(columns) + static_cast<size_t>(column)] =
            true;
  }
  if (!first) return "";
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      if (is_unwritten(row, column) && !is_explained[static_cast<size_t>(row) * static_cast<size_t>(columns) +
                                                     static_cast<size_t>(column)])
        return "";
  const std::string place = own_place_of(moved_tiles_taken.stored_at);
  return print(
      "a TMA store%s begins at column %d and row %d, outside the matrix of %d columns and %d rows: are "
      "column and row exchanged? tma_store takes the column first",
      place.empty() ? "" : (" (" + place + ")").c_str(), first->column, first->row, columns, rows);
}

bool has_loaded_columns(const void* matrix, int columns) {
  const auto boxes = moved_tiles_taken.loaded_columns.find(static_cast<const std::byte*>(matrix));
  if (boxes == moved_tiles_taken.loaded_columns.end()) return false;
  int end = 0;
  for (const auto& [column, width] : boxes->second) {
    if (column > end) break;
    end = std::max(end, column + width);
  }
  return end >= columns;
}

std::set<const void*> kernels_that_multiply, persistent_kernels;

unsigned count_os_threads(const KernelLaunch& kernel, const Options& options, uint64_t clusters) {
  uint64_t wanted = options.os_threads > 0 ? static_cast<uint64_t>(options.os_threads)
                                           : std::max(1u, std::thread::hardware_concurrency());
  if (options.check_grid) wanted = 1;
  const uint64_t fibers = kernel.block.count() * kernel.cluster.count();
  wanted = std::min({wanted, clusters, std::max<uint64_t>(1, kMaxStacks / fibers)});
  return static_cast<unsigned>(wanted);
}

/// The order in which clusters begin; a GPU promises none.
std::vector<uint64_t> order_of_clusters(uint64_t clusters, const Schedule& schedule) {
  std::vector<uint64_t> order(clusters);
  std::iota(order.begin(), order.end(), uint64_t{0});
  if (schedule.order == Order::highest_first) std::reverse(order.begin(), order.end());
  // Before both of its neighbours, too: by number or from the last, one of them always comes first.
  if (schedule.order == Order::lowest_first)
    std::stable_partition(order.begin(), order.end(), [](uint64_t cluster) { return cluster % 2 == 1; });
  if (schedule.order != Order::random) return order;
  Random random(schedule.seed, /*stream=*/0x67726964);
  for (uint64_t left = clusters; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

/// One launch: its workers take clusters in order until none is left, or one before theirs has failed.
class Launch {
 public:
  Launch(const KernelLaunch& kernel, const std::function<void()>& thread_body, const Options& options)
      : kernel_(kernel),
        thread_body_(thread_body),
        options_(options),
        clusters_(kernel.grid.count() / kernel.cluster.count()),
        accesses_(accesses_of_running_kernel),
        grid_order_(options.check_grid ? std::make_shared<GridOrder>() : nullptr),
        layout_(std::make_shared<SharedLayout>(kernel.shared_bytes)) {
    if (options.check_grid) order_ = order_of_clusters(clusters_, options.schedule);
  }

  void run() {
    const unsigned workers = count_os_threads(kernel_, options_, clusters_);
    std::vector<std::thread> others;
    for (unsigned i = 1; i < workers; ++i) others.emplace_back([this] { work(); });
    work();
    for (std::thread& other : others) other.join();
    if (error_) std::rethrow_exception(error_);
    record_.kernel = kernel_.function;
    add_to(record_.counters, exact_, sampled_, record_.counters.blocks, sampled_blocks_);
    last_record = record_;
    {
      const std::lock_guard<std::mutex> lock(unwritten_read_mutex);
      if (first_unwritten_read.empty()) first_unwritten_read = unwritten_reads_.text();
      Work& work = work_of_kernels;
      const bool multiplies = record_.counters.mma_flops > 0;
      work.has_multiplied_before |= kernels_that_multiply.count(kernel_.function) > 0;
      if (multiplies && kernel_.function) kernels_that_multiply.insert(kernel_.function);
      work.multiplies |= multiplies;
      work.stages |= stages_;
      work.moved_tiles.add(moved_tiles_);
      work.is_known = true;
      ++work.launches;
      work.kernel = kernel_;
      work.kernel.let_others_run = nullptr;
      work.grid_order = grid_order_;
      work.layout = layout_;
      work.ranges = std::move(ranges_);
    }
    if (!failure_.empty()) throw Failure(failure_);
  }

 private:
  void work() {
    try {
      Cluster cluster(kernel_, thread_body_, options_, accesses_ != nullptr, grid_order_.get(), *layout_);
      const LongTurnsAreNamed named(kernel_.name, cluster.turns());
      if (accesses_) cluster.global_accesses()->only_writes = accesses_->only_writes;
      uint64_t index = 0;
      while ((index = next_++) < clusters_ && index < first_failed_) {
        const uint64_t number = order_.empty() ? index : order_[index];
        cluster.unwritten_reads().begin(number);
        cluster.run(number);
        cluster.unwritten_reads().end(cluster);
        if (options_.trace && number == 0) remember_trace(cluster);
        if (cluster.races() && number == 0 && !cluster.failed()) {
          const std::lock_guard<std::mutex> lock(mutex_);
          ranges_ = cluster.races()->ranges_of_sites(0);
        }
        if (cluster.failed()) {
          remember_failure(cluster, index);
          break;
        }
        running_launch().blocks_done += kernel_.cluster.count();
      }
      add_figures(cluster);
    } catch (...) {  // out of memory, for example
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!error_) error_ = std::current_exception();
      first_failed_ = 0;
    }
  }

  /// Clusters are handed out in order, so all before the first that failed ran to their end: the report is
  /// the same on any number of OS threads.
  void remember_failure(const Cluster& cluster, uint64_t index) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (index >= first_failed_) return;
    first_failed_ = index;
    failure_ = cluster.failure();
  }

  void remember_trace(const Cluster& cluster) {
    const std::lock_guard<std::mutex> lock(mutex_);
    record_.trace = cluster.trace();
    record_.mbarriers = cluster.mbarriers();
    record_.registers = cluster.registers();
  }

  void add_figures(Cluster& cluster) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Counters& from = cluster.counters();
    Counters& to = record_.counters;
    to.blocks += from.blocks;
    to.threads += from.threads;
    to.block_barriers += from.block_barriers;
    to.barrier_waits += from.barrier_waits;
    to.async_copies += from.async_copies;
    to.mma_flops += from.mma_flops;
    to.slot_fills = std::max(to.slot_fills, from.slot_fills);
    to.cycles += from.cycles;
    to.copy_cycles += from.copy_cycles;
    to.math_cycles += from.math_cycles;
    to.overlap_cycles += from.overlap_cycles;
    unwritten_reads_.add(cluster.unwritten_reads());
    moved_tiles_.add(cluster.moved_tiles());
    stages_ |= from.blocks > 0 && (!cluster.races() || cluster.races()->has_thread_written() ||
                                   cluster.access_counter().exact().cluster_bytes > 0);  // st.async, perhaps
    exact_ += cluster.access_counter().exact();
    sampled_ += cluster.access_counter().sampled();
    sampled_blocks_ += cluster.sampled_blocks();
    if (accesses_) accesses_->add(*cluster.global_accesses());
  }

  const KernelLaunch& kernel_;
  const std::function<void()>& thread_body_;
  const Options options_;
  const uint64_t clusters_;
  GlobalAccesses* const accesses_;         ///< of all clusters; null if nobody wants to know
  std::vector<uint64_t> order_;            ///< where check_grid is set; else they are taken by number
  std::shared_ptr<GridOrder> grid_order_;  ///< null where nobody checks it
  std::shared_ptr<SharedLayout> layout_;
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> first_failed_{std::numeric_limits<uint64_t>::max()};

  std::mutex mutex_;  // for what follows
  std::string failure_;
  std::exception_ptr error_;
  LaunchRecord record_;
  AccessTotals exact_, sampled_;
  UnwrittenReads unwritten_reads_;
  MovedTiles moved_tiles_;
  std::vector<RaceChecker::SiteRange> ranges_;  ///< of the first block, where races are checked
  bool stages_ = false;                         ///< perhaps
  uint64_t sampled_blocks_ = 0;
};

}  // namespace

LaunchProgress launch_progress() {
  RunningLaunch& running = running_launch();
  const std::lock_guard<std::mutex> lock(running.mutex);
  LaunchProgress progress = running.state;
  progress.blocks_done = running.blocks_done;
  progress.turns = turns_of_threads;
  progress.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - running.begin).count();
  return progress;
}

void set_launch_options(const Options& options) { current_options() = options; }
const Options& options() { return current_options(); }
const Counters& last_launch() { return last_record.counters; }
const std::vector<Span>& last_trace() { return last_record.trace; }
const std::vector<MbarrierRecord>& last_mbarriers() { return last_record.mbarriers; }
const std::vector<unsigned>& last_registers() { return last_record.registers; }
bool last_kernel_has_launch_bounds() { return has_launch_bounds(last_record.kernel); }
std::string take_unwritten_read() {
  const std::lock_guard<std::mutex> lock(unwritten_read_mutex);
  return std::exchange(first_unwritten_read, {});
}
void note_persistent(const void* kernel) {
  const std::lock_guard<std::mutex> lock(unwritten_read_mutex);
  persistent_kernels.insert(kernel);
}
WorkOfKernels take_work_of_kernels() {
  const std::lock_guard<std::mutex> lock(unwritten_read_mutex);
  Work work = std::exchange(work_of_kernels, {});
  const bool lacks_products = work.has_multiplied_before && !work.multiplies,
             stages = work.stages || !work.is_known;
  work_taken = std::move(work);
  const KernelLaunch& kernel = work_taken.kernel;
  const bool is_one =
      work_taken.launches == 1 && kernel.cluster.count() == 1 && !persistent_kernels.count(kernel.function);
  return {lacks_products,
          stages,
          describe_staging,
          has_loaded_columns,
          describe_products,
          warpgroups_share_operands,
          offsets_of_descriptors,
          unread_fills,
          left_array,
          unsent_sums,
          zero_copies,
          stored_twice,
          exchanged_store,
          explain_block_of_launch,
          {is_one ? kernel.grid.x : 0, is_one ? kernel.grid.y : 0, is_one ? kernel.grid.z : 0},
          launched_at,
          find_writer,
          moved_boxes,
          kernel.cluster.y * kernel.cluster.z == 1 ? kernel.cluster.x : 1};
}

namespace {

/// Not where the lower half is so small that it is rather a number, before padding that holds anything.
bool looks_like_an_address(uint64_t word) {
  return word >> 32 >= 0x5500 && word >> 32 < 0x8000 && uint32_t(word) >= 1 << 20;
}

/// A struct may hold anything: what is too large makes the loops that are called endless fewer.
void note_numbers(KernelLaunch& kernel, const std::byte* begin, size_t bytes) {
  constexpr uint32_t kNoCount = 1 << 28;
  for (size_t at = 0; at + sizeof(uint32_t) <= bytes; at += sizeof(uint32_t)) {
    if (uint64_t word = 0; at % sizeof word == 0 && at + sizeof word <= bytes) {
      std::memcpy(&word, begin + at, sizeof word);
      if (looks_like_an_address(word)) {
        at += sizeof(uint32_t);
        continue;
      }
    }
    uint32_t number = 0;
    std::memcpy(&number, begin + at, sizeof number);
    kernel.largest_word = std::max<uint64_t>(kernel.largest_word, number);
    if (number < kNoCount) kernel.largest_count = std::max<uint64_t>(kernel.largest_count, number);
  }
}

}  // namespace

void note_parameter(KernelLaunch& kernel, unsigned index, const void* value, size_t bytes) {
  const auto* begin = static_cast<const std::byte*>(value);
  MapParameter parameter{index, {}, {}};
  for (size_t offset = 0; offset + sizeof(TensorMap) <= bytes; offset += alignof(TensorMap)) {
    if (std::memcmp(begin + offset, &kTensorMapTag, sizeof kTensorMapTag) == 0)
      parameter.offsets.push_back(offset);
  }
  if (parameter.offsets.empty()) return note_numbers(kernel, begin, bytes);
  parameter.value.assign(begin, begin + bytes);
  kernel.map_parameters.push_back(std::move(parameter));
}

bool has_refused_cluster(const KernelLaunch& kernel) { return kernel.cluster.count() > kMaxClusterBlocks; }

bool is_too_large_to_cooperate(const KernelLaunch& kernel) {
  return kernel.cooperative && kernel.grid.count() * kernel.block.count() > kMaxStacks;
}

const char* refused(const KernelLaunch& kernel) {
  if (!kernel.grid.count()) return "the grid is empty, as where a number of tiles is rounded down, not up";
  if (!kernel.block.count()) return "the block is empty";
  if (!kernel.cluster.count()) return "the cluster is empty";
  if (kernel.grid.y > 65535 || kernel.grid.z > 65535) return "grid.y and grid.z are at most 65535";
  if (kernel.block.count() > kMaxThreadsPerBlock) return "a block has at most 1024 threads";
  if (kernel.block.z > 64) return "block.z is at most 64";
  if (has_refused_cluster(kernel)) {
    return "a cluster has at most 8 blocks; some GPUs allow 16 to a kernel with the attribute "
           "cudaFuncAttributeNonPortableClusterSizeAllowed, which launch() does not set";
  }
  if (kernel.grid.x % kernel.cluster.x || kernel.grid.y % kernel.cluster.y ||
      kernel.grid.z % kernel.cluster.z) {
    return "the grid is not a multiple of the cluster";
  }
  if (is_too_large_to_cooperate(kernel))
    return "a cooperative grid has at most 24576 threads on the CPU device, where all run at once";
  if (kernel.cooperative && kernel.cluster.count() > 1)
    return "a cooperative grid has no clusters on the CPU device";
  if (kernel.shared_bytes > kMaxSharedBytes) return "a block has at most 227 KiB of dynamic shared memory";
  return nullptr;
}

void launch(const KernelLaunch& of_kernel, const std::function<void()>& thread_body) {
  if (const char* limit = refused(of_kernel)) throw std::invalid_argument(limit);
  KernelLaunch kernel = of_kernel;
  // The blocks of a cluster run at once, so that a cooperative grid is one.
  if (kernel.cooperative) kernel.cluster = kernel.grid;
  const HiddenMemoryIsOpen open;
  const LaunchRuns runs(kernel);
  Launch(kernel, thread_body, options()).run();
}

}  // namespace cpu_device
