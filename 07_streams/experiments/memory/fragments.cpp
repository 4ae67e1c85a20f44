/// @file
/// Experiment `fragments`: when an allocator that keeps what was freed runs out of memory although bytes are
/// free, and what it leaves to other processes.
///
/// Two sequences of requests, within the same budget, by several allocators. `every second stays`: pieces of
/// one size fill the budget, every second is freed, and twice as large a piece is asked for. `each is
/// larger`: a buffer grows by a quarter, again and again; the old one is freed when the new one is there.
/// Afterwards everything is freed, the host waits, and the device says what is gone from all that it had free
/// before.
///
/// The budget of a cache and of a pool is a limit of theirs. For cudaMalloc other allocations fill the device
/// but for the budget, so that the device itself refuses what does not fit.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "07_streams/experiments/memory/caching_allocator.hpp"
#include "07_streams/experiments/support.hpp"
#include "07_streams/stream_buffer.hpp"
#include "common/cuda/device_buffer.hpp"
#include "common/cuda/error.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {
namespace {

constexpr size_t kPiecesOfSegment = 16;

struct Sizes {
  size_t piece, segment, budget;
};

/// 2 MiB are what the device maps at least, and segments of some tens of MiB are what frameworks take. The
/// CPU device's pools take 2 MiB at a time.
Sizes sizes() {
  const size_t piece = ladder::on_cpu_device() ? 128 << 10 : 2 << 20,
               segments = ladder::on_cpu_device() ? 4 : 32;
  return {piece, piece * kPiecesOfSegment, piece * kPiecesOfSegment * segments};
}

/// One of the allocators that are compared. Within the budget; nullptr if there is no room.
struct Allocator {
  std::function<void*(size_t)> take;
  std::function<void(void*)> give;
  std::function<std::optional<size_t>()> largest_free;  ///< nothing where it does not tell
};

/// How a sequence of requests went.
struct Outcome {
  bool succeeded = false;
  size_t asked = 0;  ///< bytes of the last request: the one that failed, or the largest
  size_t used = 0;   ///< bytes in use then
  std::optional<size_t> largest_free;
};

Outcome every_second_stays(const Allocator& allocator, const Sizes& size) {
  std::vector<void*> pieces;
  for (size_t bytes = 0; bytes < size.budget; bytes += size.piece)
    if (void* memory = allocator.take(size.piece)) pieces.push_back(memory);
  size_t used = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i % 2) {
      allocator.give(pieces[i]);
      pieces[i] = nullptr;
    } else {
      used += size.piece;
    }
  }
  Outcome outcome{false, 2 * size.piece, used, allocator.largest_free()};
  if (void* memory = allocator.take(outcome.asked)) {
    outcome.succeeded = true;
    allocator.give(memory);
  }
  for (void* memory : pieces)
    if (memory) allocator.give(memory);
  return outcome;
}

Outcome each_is_larger(const Allocator& allocator, const Sizes& size) {
  void* memory = allocator.take(size.piece);
  Outcome outcome{true, size.piece, size.piece, {}};
  // Old and new buffer are there at one time: together they fit as long as this holds.
  for (size_t bytes = size.piece * 5 / 4; bytes + bytes * 4 / 5 <= size.budget; bytes = bytes / 4 * 5) {
    outcome.asked = bytes;
    void* const larger = allocator.take(bytes);
    if (!larger) {
      outcome.succeeded = false;
      break;
    }
    allocator.give(memory);
    memory = larger;
    outcome.used = bytes;
  }
  outcome.largest_free = allocator.largest_free();
  allocator.give(memory);
  return outcome;
}

struct Case {
  std::string requests, allocator;
  bool expected;  ///< whether the last request should succeed
  bool keeps;     ///< whether the allocator should keep memory from others
  Outcome outcome = {};
  double us = 0;
  size_t kept = 0;    ///< bytes that the device has less than before, when all is freed and waited for
  size_t filled = 0;  ///< bytes of the device that other allocations hold meanwhile
};

size_t free_bytes() {
  size_t free = 0, all = 0;
  CUDA_CHECK(cudaMemGetInfo(&free, &all));
  return free;
}

void play(Case& one, const Sizes& size, const Allocator& allocator, cudaStream_t stream) {
  CUDA_CHECK(cudaDeviceSynchronize());
  one.us = host_us([&] {
    one.outcome = one.requests == "every second stays" ? every_second_stays(allocator, size)
                                                       : each_is_larger(allocator, size);
  });
  CUDA_CHECK(cudaStreamSynchronize(stream));
}

void play_with_cache(Case& one, const Sizes& size, cudaStream_t stream, bool gives_back) {
  const size_t before = free_bytes();
  CachingAllocator cache(size.budget, size.segment, gives_back);
  play(one, size,
       {[&](size_t bytes) { return cache.allocate(bytes); }, [&](void* memory) { cache.free(memory); },
        [&] { return std::optional(cache.largest_free()); }},
       stream);
  one.kept = before - std::min(before, free_bytes());
}

void play_with_pool(Case& one, const Sizes& size, cudaStream_t stream, uint64_t release_threshold) {
  const size_t before = free_bytes();
  const MemoryPool pool(release_threshold, size.budget);
  const auto take = [&](size_t bytes) {
    void* memory = nullptr;
    const cudaError_t result = cudaMallocFromPoolAsync(&memory, bytes, pool.get(), stream);
    if (result == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();  // Forget it: the next call succeeds.
      return static_cast<void*>(nullptr);
    }
    CUDA_CHECK(result);
    return memory;
  };
  play(one, size,
       {take, [&](void* memory) { CUDA_CHECK(cudaFreeAsync(memory, stream)); },
        [] { return std::optional<size_t>(); }},
       stream);
  one.kept = before - std::min(before, free_bytes());
}

using Memory = ladder::DeviceBuffer<std::byte>;

/// The CPU device writes to memory that it gives, and has half of the machine's: too much to fill, unless
/// LADDER_CPU_DEVICE_MIB makes it small.
bool can_be_filled() {
  constexpr size_t kMostOnCpu = 256 << 20;
  return !ladder::on_cpu_device() || free_bytes() <= kMostOnCpu;
}

/// Takes all memory of the device but `left`, to within a piece. The device decides: what its free bytes add
/// up to need not be what it gives.
std::vector<Memory> fill_device_but(size_t left, size_t piece) {
  const Memory kept_free(left);  // until the rest is taken
  std::vector<Memory> taken;
  for (size_t bytes = free_bytes(); bytes >= piece;) {
    try {
      taken.emplace_back(bytes);
    } catch (const ladder::OutOfDeviceMemory&) {
      bytes /= 2;
    }
  }
  return taken;
}

/// cudaMalloc for every request, on a device that has the budget and no more. Where it cannot be filled, a
/// counter refuses what is beyond the budget.
void play_without_cache(Case& one, const Sizes& size, cudaStream_t stream) {
  const bool device_refuses = can_be_filled();
  const size_t before_filling = free_bytes();
  std::vector<Memory> filler;
  // A piece stays for the driver's own tables: too little for the last request, which is twice as large.
  if (device_refuses) filler = fill_device_but(size.budget + size.piece, size.piece);
  const size_t before = free_bytes();
  one.filled = before_filling - std::min(before_filling, before);
  std::map<void*, Memory> live;
  size_t used = 0;
  const auto take = [&](size_t bytes) -> void* {
    if (!device_refuses && used + bytes > size.budget) return nullptr;
    try {
      Memory memory(bytes);
      void* const begin = memory.data();
      live.emplace(begin, std::move(memory));
      used += bytes;
      return begin;
    } catch (const ladder::OutOfDeviceMemory&) {
      return nullptr;
    }
  };
  const auto give = [&](void* memory) {
    const auto found = live.find(memory);
    if (found == live.end()) return;
    used -= found->second.size();
    live.erase(found);
  };
  play(one, size, {take, give, [] { return std::optional<size_t>(); }}, stream);
  one.kept = before - std::min(before, free_bytes());
}

std::string mb(size_t bytes) { return ladder::fixed(static_cast<double>(bytes) / 1e6, 1); }

void run_fragments(const Context& context) {
  const Sizes size = sizes();
  if (const size_t free = free_bytes(), needed = size.budget + 2 * size.piece; free < needed)
    throw ladder::BadInput("fragments: needs " + mb(needed) + " MB of the device's memory, and " + mb(free) +
                           " MB are free; other programs may hold the rest");
  const ladder::Stream stream = ladder::make_stream();
  // NVIDIA's words on the allocator (developer blog, 2021): where a pool is fragmented, the driver maps what
  // is unused anew, side by side. The CPU device's pools do not.
  const bool remaps = !ladder::on_cpu_device();
  std::vector<Case> cases;
  for (const char* requests : {"every second stays", "each is larger"}) {
    const bool pieces = requests[1] == 'v';  // of one size
    cases.push_back({requests, "a cache", false, true});
    cases.push_back({requests, "a cache that gives back", !pieces, true});
    cases.push_back({requests, "pool, threshold max", remaps, true});
    cases.push_back({requests, "pool, threshold 0", remaps, false});
    cases.push_back({requests, "cudaMalloc", true, false});
  }
  context.out << "a budget of " << mb(size.budget) << " MB\n";
  ladder::Table table(context.out, {{"requests", 18, false},
                                    {"allocator", 23, false},
                                    {"asked MB", 8},
                                    {"gets it", 7, false},
                                    {"predicted", 9, false},
                                    {"free MB", 7},
                                    {"largest", 7},
                                    {"kept", 6}});
  table.header();
  for (Case& one : cases) {
    if (one.allocator == "cudaMalloc") play_without_cache(one, size, stream.get());
    if (one.allocator.starts_with("a cache"))
      play_with_cache(one, size, stream.get(), one.allocator != "a cache");
    if (one.allocator.starts_with("pool"))
      play_with_pool(one, size, stream.get(), one.allocator == "pool, threshold 0" ? 0 : UINT64_MAX);
    const Outcome& outcome = one.outcome;
    const auto yes = [](bool is) { return is ? "yes" : "no"; };
    const ladder::Settings settings = {
        {"requests", one.requests},
        {"allocator", one.allocator},
        {"asked_mb", mb(outcome.asked)},
        {"gets_it", yes(outcome.succeeded)},
        {"predicted", yes(one.expected)},
        {"budget_mb", mb(size.budget)},
        {"free_mb", mb(size.budget - outcome.used)},
        {"largest_free_mb", outcome.largest_free ? mb(*outcome.largest_free) : "-"},
        {"kept_from_others_mb", mb(one.kept)},
        {"predicted_to_keep", yes(one.keeps)},
        {"filled_mb", mb(one.filled)}};
    table.row({one.requests, one.allocator, settings.at("asked_mb"), settings.at("gets_it"),
               settings.at("predicted"), settings.at("free_mb"), settings.at("largest_free_mb"),
               settings.at("kept_from_others_mb")});
    add_result(context, "fragments", {"", settings, {}}, {}, {one.us, one.us, one.us});
  }
  context.out << "cudaMalloc: "
              << (can_be_filled()
                      ? mb(cases.back().filled) + " MB are held meanwhile, so that the device refuses more\n"
                      : "a counter refuses more, as this device is too large to fill; "
                        "LADDER_CPU_DEVICE_MIB=64\nmakes it small\n");
  context.out
      << "free: what the budget has and nobody uses, when the last request is made; largest: the largest "
         "free\npiece; kept: what other processes lack when all is freed and the host has waited\n";
}

}  // namespace

const Experiment& fragments_experiment() {
  static const Experiment experiment = {
      "fragments",
      "When does an allocator run out of memory while bytes are free, and what does it keep from others?",
      run_fragments};
  return experiment;
}

}  // namespace lesson07
