/// @file
/// Implementation of the access counters.
#include "common/cpu_device/observe/counters.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "common/cpu_device/base/warp.hpp"

namespace cpu_device {
namespace {

constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;
constexpr unsigned kPassBytes = kBanks * kBankBytes;
constexpr unsigned kSectorBytes = 32;
/// The widest access of one lane; what compilers report as longer is several instructions.
constexpr uint32_t kWidestAccess = 16;

constexpr uint64_t AccessTotals::*kFields[] = {
    &AccessTotals::global_bytes_read,   &AccessTotals::global_bytes_written,
    &AccessTotals::global_read_sectors, &AccessTotals::global_write_sectors,
    &AccessTotals::shared_bytes_read,   &AccessTotals::shared_bytes_written,
    &AccessTotals::shared_wavefronts,   &AccessTotals::bank_conflicts,
    &AccessTotals::cluster_bytes};

constexpr uint64_t Counters::*kCounterFields[] = {
    &Counters::global_bytes_read,    &Counters::global_bytes_written, &Counters::global_read_sectors,
    &Counters::global_write_sectors, &Counters::shared_bytes_read,    &Counters::shared_bytes_written,
    &Counters::shared_wavefronts,    &Counters::bank_conflicts,       &Counters::cluster_bytes};

uint64_t scaled(uint64_t value, double factor) {
  return static_cast<uint64_t>(std::llround(static_cast<double>(value) * factor));
}

/// The passes that lanes take which are served together: as many as the busiest bank has different words.
Wavefronts wavefronts_of_group(const LaneAccess* lanes, unsigned count) {
  struct Word {
    uint64_t number;
    int next_of_bank;
  };
  Word words[kWarpLanes * (kWidestAccess / kBankBytes + 1)];
  int word_count = 0;
  int first_of_bank[kBanks];
  unsigned words_of_bank[kBanks] = {};
  std::fill_n(first_of_bank, kBanks, -1);

  unsigned busiest = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (lanes[i].bytes == 0) continue;
    const uint64_t last = (lanes[i].address + lanes[i].bytes - 1) / kBankBytes;
    for (uint64_t word = lanes[i].address / kBankBytes; word <= last; ++word) {
      const unsigned bank = word % kBanks;
      int known = first_of_bank[bank];
      while (known >= 0 && words[known].number != word) known = words[known].next_of_bank;
      if (known >= 0) continue;
      words[word_count] = {word, first_of_bank[bank]};
      first_of_bank[bank] = word_count++;
      busiest = std::max(busiest, ++words_of_bank[bank]);
    }
  }
  return {busiest, (static_cast<unsigned>(word_count) + kBanks - 1) / kBanks};
}

/// A well-mixed function of the argument (the finalizer of splitmix64).
uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

AccessTotals& AccessTotals::operator+=(const AccessTotals& other) {
  for (const auto field : kFields) this->*field += other.*field;
  return *this;
}

void add_to(Counters& counters, const AccessTotals& exact, const AccessTotals& sampled, uint64_t blocks,
            uint64_t sampled_blocks) {
  const double factor =
      sampled_blocks ? static_cast<double>(blocks) / static_cast<double>(sampled_blocks) : 0;
  for (size_t i = 0; i < std::size(kFields); ++i) {
    counters.*kCounterFields[i] += exact.*kFields[i] + scaled(sampled.*kFields[i], factor);
  }
}

bool is_sampled(uint64_t cluster, uint64_t clusters) {
  if (clusters <= kSampledClusters) return true;
  // Part p holds the clusters from p * clusters / kSampledClusters (rounded up) on.
  const uint64_t part = cluster * kSampledClusters / clusters;
  const uint64_t begin = (part * clusters + kSampledClusters - 1) / kSampledClusters;
  const uint64_t end = ((part + 1) * clusters + kSampledClusters - 1) / kSampledClusters;
  return cluster == begin + mix(part + 1) % (end - begin);
}

unsigned count_sectors(const LaneAccess* lanes, unsigned count) {
  uint64_t sectors[kWarpLanes * 2];
  unsigned found = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (lanes[i].bytes == 0) continue;
    const uint64_t last = (lanes[i].address + lanes[i].bytes - 1) / kSectorBytes;
    for (uint64_t sector = lanes[i].address / kSectorBytes; sector <= last; ++sector) {
      // Neighbouring lanes mostly share a sector, so look at the newest first.
      unsigned k = found;
      while (k > 0 && sectors[k - 1] != sector) --k;
      if (k == 0) sectors[found++] = sector;
    }
  }
  return found;
}

Wavefronts count_wavefronts(const LaneAccess* lanes, unsigned count) {
  uint32_t widest = kBankBytes;
  for (unsigned i = 0; i < count; ++i) widest = std::max(widest, lanes[i].bytes);
  const unsigned together = widest <= 4 ? kWarpLanes : widest <= 8 ? kPassBytes / 8 : kPassBytes / 16;
  Wavefronts sum;
  for (unsigned first = 0; first < count; first += together) {
    const Wavefronts group = wavefronts_of_group(lanes + first, std::min(together, count - first));
    sum.taken += group.taken;
    sum.ideal += group.ideal;
  }
  return sum;
}

/// All that is known of one instruction, over all warps and clusters.
struct AccessCounter::Instruction {
  uint64_t key;
  uint64_t bytes = 0;
  uint64_t lane_accesses = 0, examined_lane_accesses = 0;
  // Of the examined ones:
  uint64_t sectors = 0;
  uint64_t wavefronts = 0, conflicts = 0;

  bool writes() const { return key & 1; }
  Space space() const { return static_cast<Space>(key >> 1 & 1); }
};

/// One execution of an instruction by the lanes of a warp.
struct AccessCounter::Execution {
  uint64_t addresses[kWarpLanes];
  uint32_t lanes = 0;  ///< a bit for each
  uint32_t bytes = 0;
};

/// The executions of one instruction by one warp since it converged.
struct AccessCounter::Stream {
  uint32_t executed[kWarpLanes] = {};  ///< by each lane
  bool is_active = false;
  std::vector<uint32_t> waiting;  ///< numbers in executions_; the k-th is everybody's k-th
};

struct AccessCounter::Warp {
  std::vector<Stream> streams;   ///< by instruction
  std::vector<uint32_t> active;  ///< instructions executed since the warp converged
};

AccessCounter::AccessCounter() : table_(1024) {}

AccessCounter::~AccessCounter() = default;

void AccessCounter::begin(unsigned warps) {
  converge_all();
  warps_.resize(warps);
}

uint32_t AccessCounter::find_instruction(uint64_t key) {
  const size_t last = table_.size() - 1;
  size_t slot = mix(key) & last;
  while (table_[slot]) {
    if (instructions_[table_[slot] - 1].key == key) return table_[slot] - 1;
    slot = (slot + 1) & last;
  }
  instructions_.push_back({key});
  table_[slot] = static_cast<uint32_t>(instructions_.size());
  if (instructions_.size() * 2 > table_.size()) grow_table();
  return static_cast<uint32_t>(instructions_.size() - 1);
}

void AccessCounter::grow_table() {
  table_.assign(table_.size() * 2, 0);
  const size_t last = table_.size() - 1;
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    size_t slot = mix(instructions_[i].key) & last;
    while (table_[slot]) slot = (slot + 1) & last;
    table_[slot] = i + 1;
  }
}

void AccessCounter::lane_access(unsigned warp, unsigned lane, const void* instruction, Space space,
                                uint64_t address, uint32_t bytes, bool write) {
  const uint64_t key = reinterpret_cast<uintptr_t>(instruction) << 8 | static_cast<uint64_t>(space) << 1 |
                       static_cast<uint64_t>(write);
  constexpr uint64_t kNextPiece = 4, kPieceMask = 0xfc;  // bits 2 to 7 of the key: which piece
  for (uint64_t piece = 0;; piece = (piece + kNextPiece) & kPieceMask) {
    const uint32_t now = std::min(bytes, kWidestAccess);
    piece_access(warps_[warp], lane, key | piece, address, now);
    bytes -= now;
    address += now;
    if (bytes == 0) return;
  }
}

void AccessCounter::piece_access(Warp& warp, unsigned lane, uint64_t key, uint64_t address, uint32_t bytes) {
  const uint32_t number = find_instruction(key);
  Instruction& instruction = instructions_[number];
  ++instruction.lane_accesses;
  instruction.bytes += bytes;

  if (number >= warp.streams.size()) warp.streams.resize(instructions_.size());
  Stream& stream = warp.streams[number];
  if (!stream.is_active) {
    stream.is_active = true;
    warp.active.push_back(number);
  }
  const uint32_t occurrence = stream.executed[lane]++;
  if (occurrence >= kExaminedExecutions) return;
  if (occurrence >= stream.waiting.size()) {
    if (occurrence > stream.waiting.size()) return;  // an earlier one found no room
    if (unused_executions_.empty()) {
      if (executions_.size() == kWaitingExecutions) return;
      unused_executions_.push_back(static_cast<uint32_t>(executions_.size()));
      executions_.emplace_back();
    }
    executions_[unused_executions_.back()].lanes = 0;
    executions_[unused_executions_.back()].bytes = 0;
    stream.waiting.push_back(unused_executions_.back());
    unused_executions_.pop_back();
  }
  Execution& execution = executions_[stream.waiting[occurrence]];
  execution.addresses[lane] = address;
  execution.lanes |= 1u << lane;
  execution.bytes = std::max(execution.bytes, bytes);
}

void AccessCounter::examine(Instruction& instruction, const Execution& execution) {
  LaneAccess lanes[kWarpLanes];
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (execution.lanes >> lane & 1) lanes[lane] = {execution.addresses[lane], execution.bytes};
  }
  instruction.examined_lane_accesses += static_cast<unsigned>(__builtin_popcount(execution.lanes));
  if (instruction.space() == Space::global) {
    instruction.sectors += count_sectors(lanes, kWarpLanes);
  } else {
    const Wavefronts wavefronts = count_wavefronts(lanes, kWarpLanes);
    instruction.wavefronts += wavefronts.taken;
    instruction.conflicts += wavefronts.taken - wavefronts.ideal;
  }
}

void AccessCounter::converge_all() {
  for (unsigned i = 0; i < warps_.size(); ++i) converge_warp(i);
}

void AccessCounter::converge_warp(unsigned warp) {
  for (const uint32_t number : warps_[warp].active) {
    Stream& stream = warps_[warp].streams[number];
    for (const uint32_t execution : stream.waiting) {
      examine(instructions_[number], executions_[execution]);
      unused_executions_.push_back(execution);
    }
    stream.waiting.clear();
    stream.is_active = false;
    std::fill_n(stream.executed, kWarpLanes, 0);
  }
  warps_[warp].active.clear();
}

void AccessCounter::warp_access(Space space, const LaneAccess* lanes, unsigned count, bool write) {
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) bytes += lanes[i].bytes;
  if (space == Space::global) {
    (write ? exact_.global_bytes_written : exact_.global_bytes_read) += bytes;
    (write ? exact_.global_write_sectors : exact_.global_read_sectors) += count_sectors(lanes, count);
  } else {
    const Wavefronts wavefronts = count_wavefronts(lanes, count);
    (write ? exact_.shared_bytes_written : exact_.shared_bytes_read) += bytes;
    exact_.shared_wavefronts += wavefronts.taken;
    exact_.bank_conflicts += wavefronts.taken - wavefronts.ideal;
  }
}

void AccessCounter::bulk_access(Space space, uint64_t address, uint64_t bytes, bool write) {
  if (bytes == 0) return;
  if (space == Space::global) {
    const uint64_t sectors = (address + bytes - 1) / kSectorBytes - address / kSectorBytes + 1;
    (write ? exact_.global_bytes_written : exact_.global_bytes_read) += bytes;
    (write ? exact_.global_write_sectors : exact_.global_read_sectors) += sectors;
  } else {
    (write ? exact_.shared_bytes_written : exact_.shared_bytes_read) += bytes;
    exact_.shared_wavefronts += (bytes + kPassBytes - 1) / kPassBytes;
  }
}

AccessTotals AccessCounter::sampled() const {
  AccessTotals totals;
  totals.cluster_bytes = sampled_cluster_bytes_;
  for (const Instruction& instruction : instructions_) {
    const bool writes = instruction.writes();
    if (instruction.space() == Space::global) {
      (writes ? totals.global_bytes_written : totals.global_bytes_read) += instruction.bytes;
    } else {
      (writes ? totals.shared_bytes_written : totals.shared_bytes_read) += instruction.bytes;
    }
    if (instruction.examined_lane_accesses == 0) continue;
    const double factor = static_cast<double>(instruction.lane_accesses) /
                          static_cast<double>(instruction.examined_lane_accesses);
    (writes ? totals.global_write_sectors : totals.global_read_sectors) +=
        scaled(instruction.sectors, factor);
    totals.shared_wavefronts += scaled(instruction.wavefronts, factor);
    totals.bank_conflicts += scaled(instruction.conflicts, factor);
  }
  return totals;
}

}  // namespace cpu_device
