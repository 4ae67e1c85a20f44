/// @file
/// Why bytes that an mbarrier expects do not come, or why too many have.
#include <algorithm>
#include <cstring>
#include <set>

#include "common/cpu_device/kernel/deadlock_mbarriers.hpp"
#include "common/cpu_device/kernel/deadlock_missing.hpp"
#include "common/cpu_device/kernel/deadlock_words.hpp"
#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_reports.hpp"
#include "common/cpu_device/kernel/wait_graph.hpp"

namespace cpu_device {
namespace {

/// No bytes have ever come to this barrier, but to those at the same place in other blocks.
std::string bytes_to_other_blocks_alone(const WaitGraph& graph, const Mbarrier& barrier) {
  if (barrier.has_had_bytes) return "";
  std::vector<const Block*> receivers;
  for (const Block* block : graph.blocks()) {
    const Mbarrier* const other = counterpart_in(*block, barrier);
    if (other && other->has_had_bytes) receivers.push_back(block);
  }
  if (receivers.empty()) return "";
  return ": bytes have never come to " + describe(*barrier.block) + ", but only to" +
         ranges_of_blocks(receivers) + ": does this block receive any, or has their sender left it out?";
}

/// "block (2,0,0) sent 65536 bytes by ... to inbox_full of block (3,0,0), where nobody expects bytes: ...":
/// of the barriers at the same place, some lack the bytes that have come at others.
std::string bytes_in_other_blocks(const WaitGraph& graph, const Mbarrier& barrier) {
  int64_t balance = 0;
  std::string text;
  int named = 0;
  uint32_t mask = 0;
  for (const Block* block : graph.blocks()) {
    const Mbarrier* const other = counterpart_in(*block, barrier);
    if (!other) continue;
    balance += other->missing_bytes;
    if (other->missing_bytes >= 0) continue;
    if (other->expected_bytes || other->last_expected_bytes || !other->waiting.empty()) return "";
    const std::vector<Mbarrier::Arrival> came = with_bytes(other->arrivals, true);
    if (came.empty()) return "";
    std::vector<const Block*> senders;
    for (const Mbarrier::Arrival& arrival : came) {
      const Block* const sender = arrival.thread->block;
      mask = arrival.multicast_mask;
      // What a block sends that lacks bytes, too, is meant for others: they may not have come so far.
      const Mbarrier* const its_own = counterpart_in(*sender, barrier);
      if (mask ? mask >> barrier.block->ids.rank_in_cluster & 1 : its_own && its_own->missing_bytes > 0)
        return "";
      if (std::find(senders.begin(), senders.end(), sender) == senders.end()) senders.push_back(sender);
    }
    if (named++ >= kMostGroups) continue;
    const char* const what = came.front().what + std::strlen("bytes of a ");
    text +=
        (text.empty() ? "" : ", and") + ranges_of_blocks(senders) +
        (text.empty() ? print(" sent %lld bytes by ", static_cast<long long>(-other->missing_bytes)) + what +
                            " (" + own_place(came.front().where) + ") to " + name_of(barrier) + " of "
                      : " to that of ") +
        describe(*block);
  }
  if (text.empty() || balance) return "";
  return text.substr(1) + (named > kMostGroups ? ", and so on" : "") + ", where nobody expects bytes: " +
         (mask ? "does the mask name a wrong block?" : "is the rank of the receiver wrong?");
}

/// As many bytes as are missing have come at another barrier that did not expect them.
std::string bytes_elsewhere(const WaitGraph& graph, const Mbarrier& barrier) {
  if (barrier.missing_bytes <= 0) return "";
  for (const auto& other : barrier.block->mbarriers)
    if (other->missing_bytes == -barrier.missing_bytes)
      return print("as many bytes as are missing, %lld, came at ",
                   static_cast<long long>(barrier.missing_bytes)) +
             name_of(*other) + ", unexpected, of" + list(with_bytes(other->arrivals, true)) +
             ": is that the wrong barrier?";
  return bytes_in_other_blocks(graph, barrier);
}

}  // namespace

std::string why_of_bytes(const WaitGraph& graph, const Mbarrier& barrier) {
  std::string text = print("%lld bytes were expected", static_cast<long long>(barrier.expected_bytes));
  std::set<std::string> places;
  for (const Mbarrier::Arrival& arrival : with_bytes(barrier.arrivals, false))
    if (const std::string place = own_place(arrival.where); places.insert(place).second)
      text += " (" + place + ")";
  if (const std::string elsewhere = bytes_elsewhere(graph, barrier); !elsewhere.empty())
    return text + "; " + elsewhere;
  const std::string arrived = list(with_bytes(barrier.arrivals, true), nullptr, /*says_bytes=*/true);
  return text +
         (arrived.empty() ? ", and none came" + bytes_to_other_blocks_alone(graph, barrier)
                          : ", and these came:" + arrived) +
         (barrier.missing_bytes < 0 ? explain_surplus(barrier) : "");
}

}  // namespace cpu_device
