#include "common/cpu_device/kernel/reports/loads.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {

std::vector<LoadOfPhase> loads_of_phase(const Mbarrier& barrier, uint64_t phase, const Thread* lands) {
  struct Sender {
    const Thread* thread = nullptr;
    size_t of_phase = 0, later = 0;  ///< copies
  };
  std::map<unsigned, Sender> senders;
  const auto count = [&](const Thread* thread, uint64_t sent_in) {
    if (sent_in < phase) return;
    Sender& sender = senders[thread->number];
    sender.thread = thread;
    ++(sent_in == phase ? sender.of_phase : sender.later);
  };
  if (lands) count(lands, phase);
  uint64_t ended = 0;
  for (const auto* arrivals : {&barrier.arrivals, &barrier.last_arrivals, &barrier.earlier_arrivals}) {
    for (const Mbarrier::Arrival& one : *arrivals)
      if (one.bytes) count(one.thread, barrier.phase - ended);
    if (++ended > barrier.phase) break;
  }
  if (senders.empty()) return {};
  for (const auto& operation : senders.begin()->second.thread->cluster.in_flight()) {
    const auto* const one = dynamic_cast<const CountedCopy*>(operation.get());
    if (one && one->barrier == &barrier) count(one->issuer, one->phase);
  }
  std::vector<LoadOfPhase> found;
  for (const auto& [number, sender] : senders) {
    size_t later = sender.later, of_phase = sender.of_phase;
    const auto& loads = sender.thread->last_loads;
    for (auto load = loads.rbegin(); load != loads.rend() && of_phase; ++load) {
      if (load->barrier != &barrier) continue;
      if (later) {
        --later;
      } else {
        --of_phase;
        found.push_back({sender.thread, *load});
      }
    }
    if (of_phase) return {};
  }
  return found;
}

bool overlap(const LoadOfPhase& one, const LoadOfPhase& other) {
  return one.load.offset < other.load.offset + other.load.bytes &&
         other.load.offset < one.load.offset + one.load.bytes;
}

bool fill_arrays(const std::vector<LoadOfPhase>& loads) {
  const Unobserved unobserved;
  std::map<std::pair<size_t, size_t>, size_t> filled;  // bytes of each array
  for (const LoadOfPhase& one : loads) {
    const Block& block = *one.load.barrier->block;
    const auto array = array_around(one.issuer->cluster.layout(), block.shared.bytes(), one.load.offset);
    if (one.load.offset + one.load.bytes > array.second) return false;
    filled[array] += one.load.bytes;
    for (const LoadOfPhase& other : loads)
      if (&other != &one && overlap(one, other)) return false;
  }
  return std::all_of(filled.begin(), filled.end(), [](const auto& one) {
    const auto& [array, bytes] = one;
    return bytes == array.second - array.first;
  });
}

std::string explain_unfilled(const std::vector<LoadOfPhase>& loads, int64_t missing) {
  const Unobserved unobserved;
  for (const LoadOfPhase& first : loads) {
    SharedLayout& layout = first.issuer->cluster.layout();
    const size_t all = first.load.barrier->block->shared.bytes();
    // Of "smem.b[0].panels[1]" all panels; of "smem.b[0]" this slot alone.
    const auto tile_at = [&](size_t offset) {
      const std::string name = without_row(layout.name_of(offset));
      const size_t last = name.rfind('[');
      return last == name.find('[') ? name : name.substr(0, last);
    };
    const std::string tile = tile_at(first.load.offset);
    if (tile.empty()) return "";
    auto [begin, end] = array_around(layout, all, first.load.offset);
    while (end < all && tile_at(end) == tile) end = array_around(layout, all, end).second;
    while (begin && tile_at(begin - 1) == tile) begin = array_around(layout, all, begin - 1).first;
    size_t filled = 0, count = 0;
    const auto is_of_tile = [&, begin = begin, end = end](const LoadOfPhase& one) {
      return one.load.offset >= begin && one.load.offset < end;
    };
    for (const LoadOfPhase& one : loads) {
      if (!is_of_tile(one)) continue;
      const bool is_alone = std::none_of(loads.begin(), loads.end(), [&](const LoadOfPhase& other) {
        return &other != &one && overlap(one, other);
      });
      if (one.load.mask || !(one.load.where == first.load.where) || !is_alone) return "";
      filled += one.load.bytes;
      ++count;
    }
    if (end - begin != filled + static_cast<size_t>(missing)) continue;
    return std::string(count > 1 ? "the loads at " : "the load at ") + own_place(first.load.where) +
           (count > 1 ? " fill " : " fills ") +
           print("%zu of the %zu bytes of %s; the rest is as many bytes as are missing: ", filled,
                 end - begin, tile.c_str()) +
           "is a load missing, or its box too small?";
  }
  return "";
}

std::string explain_same_place(const std::vector<LoadOfPhase>& loads) {
  const auto describe_load = [](const LoadOfPhase& one) {
    const Block& block = *one.issuer->block;
    return describe(block) + " (" + own_place(one.load.where) + ", mask " + binary(one.load.mask, block) +
           ")";
  };
  for (const LoadOfPhase& one : loads)
    for (const LoadOfPhase& other : loads)
      if (one.issuer->number < other.issuer->number && one.issuer->block != other.issuer->block &&
          one.load.mask && other.load.mask && one.load.offset == other.load.offset &&
          one.load.bytes == other.load.bytes)
        return describe_load(one) + " and " + describe_load(other) +
               " send to the same place: does a mask name a wrong block?";
  return "";
}

}  // namespace cpu_device
