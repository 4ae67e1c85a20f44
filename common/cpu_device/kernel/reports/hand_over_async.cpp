/// @file
/// What threads must commit, and wait for, before they hand over: cp.async, wgmma and TMA stores.
#include "common/cpu_device/kernel/reports/hand_over.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {

std::string explain_late_commit(const Thread& thread, uint32_t epoch, size_t offset) {
  const auto is_the_copy = [&](const Copy& copy) {
    const auto begin = static_cast<size_t>(copy.shared - thread.block->shared.generic());
    return copy.epoch == epoch && begin <= offset && offset < begin + copy.bytes;
  };
  const auto explain = [&](const std::vector<Copy>& copies, const Location* committed_at,
                           uint32_t commit_epoch) -> std::string {
    const auto copy = std::find_if(copies.begin(), copies.end(), is_the_copy);
    const auto next = std::find_if(thread.block_barriers.begin(), thread.block_barriers.end(),
                                   [&](const Thread::Order& one) { return one.epoch >= epoch; });
    if (copy == copies.end() || next == thread.block_barriers.end()) return "";
    if (committed_at && commit_epoch <= next->epoch) return "";
    return "no commit comes between the cp.async and the next __syncthreads (" + own_place(next->where) +
           ")" +
           (committed_at ? "; the one at " + own_place(*committed_at) +
                               " closes its group after that, so that no wait before covers it"
                         : "");
  };
  const Unobserved unobserved;
  std::string text;
  const auto explain_group = [&](const CopyGroup* group) {
    if (text.empty() && group && group->issuer == &thread && !group->barrier)
      text = explain(group->copies, group->committed_at.line ? &group->committed_at : nullptr,
                     group->commit_epoch);
  };
  explain_group(thread.open_copies.get());
  explain_group(thread.landing_copies);
  for (const auto& operation : thread.cluster.in_flight())
    explain_group(dynamic_cast<const CopyGroup*>(operation.get()));
  for (const LandedGroup& group : thread.landed_groups)
    if (text.empty()) text = explain(group.copies, &group.committed_at, group.commit_epoch);
  return text;
}

namespace {

/// " leaves out the newest group of copies".
std::string leaves_out(unsigned groups, const char* of) {
  return (groups == 1 ? std::string(" leaves out the newest group of ")
                      : print(" leaves out the %u newest groups of ", groups)) +
         of;
}

}  // namespace

std::string explain_copy_wait(const Thread& thread, const Thread::Order& barrier) {
  const bool is_too_early = thread.uncommitted_wait_at.line;
  if (!thread.copy_groups_at_wait && !is_too_early) return "";
  const std::string wait = ": the wait at " + own_place(thread.last_copy_wait_at);
  if (thread.last_copy_wait_epoch > barrier.epoch) return wait + " comes after it";
  if (!thread.copy_groups_left) return is_too_early ? wait + " comes before the commit" : "";
  return wait + leaves_out(thread.copy_groups_left, "copies");
}

namespace {

/// The group of the thread's cp.async that was issued in this epoch and writes the byte; 0 if it is in none
/// yet, or not known any more.
uint64_t group_of_copy(const Thread& thread, uint32_t epoch, size_t offset) {
  const auto has_the_copy = [&](const std::vector<Copy>& copies) {
    return std::any_of(copies.begin(), copies.end(), [&](const Copy& copy) {
      const auto begin = static_cast<size_t>(copy.shared - thread.block->shared.generic());
      return copy.epoch == epoch && begin <= offset && offset < begin + copy.bytes;
    });
  };
  const auto is_its_group = [&](const CopyGroup* group) {
    return group && group->issuer == &thread && !group->barrier && has_the_copy(group->copies);
  };
  if (is_its_group(thread.landing_copies)) return thread.landing_copies->number;
  for (const auto& operation : thread.cluster.in_flight())
    if (const auto* group = dynamic_cast<const CopyGroup*>(operation.get()); is_its_group(group))
      return group->number;
  for (const LandedGroup& group : thread.landed_groups)
    if (has_the_copy(group.copies)) return group.number;
  return 0;
}

}  // namespace

std::string explain_own_copy(const Thread& thread, const RaceChecker::Unordered& accesses) {
  const std::string copy = "cp.async";
  const bool first_is_copy = accesses.first_what == copy;
  const std::string first = first_is_copy && accesses.second_what == copy ? "first " : "";
  const std::string what =
      "one thread does both, and no wait of its own for the " + first + copy + " comes between";
  const uint32_t copied_in = first_is_copy ? accesses.first_epoch : accesses.second_epoch,
                 read_in = first_is_copy ? accesses.second_epoch : accesses.first_epoch;
  const auto wait =  // the last one before the read
      std::find_if(thread.copy_waits.rbegin(), thread.copy_waits.rend(),
                   [&](const Thread::CopyWait& one) { return one.epoch <= read_in; });
  if (accesses.reads_early && copied_in && wait != thread.copy_waits.rend()) {
    const uint64_t group = group_of_copy(thread, copied_in, accesses.offset);
    if (group && group <= wait->groups && group + wait->left > wait->groups)
      return "one thread does both, and no wait of its own covers the " + copy + ": the wait at " +
             own_place(wait->where) + leaves_out(wait->left, "copies") + ", and this is one of them";
    if (accesses.is_rewritten && copied_in >= wait->epoch) {
      accesses.retell(
          "overwritten while it may still be read, or read before the copy landed: no barrier or wait orders "
          "the two");
      return "one thread starts the " + copy + " and reads after that, and its last wait before the read (" +
             own_place(wait->where) + ") comes before both: is the " + copy +
             " started too early, as the read must come first, or must a wait come between?";
    }
  }
  if (!first_is_copy || !accesses.second_epoch || !thread.copy_groups_at_wait || !thread.copy_groups_left ||
      thread.last_copy_wait_epoch <= accesses.first_epoch ||
      thread.last_copy_wait_epoch > accesses.second_epoch)
    return what + (first.empty()
                       ? ""
                       : std::string(accesses.is_unread ? ", and nobody reads there between the two" : "") +
                             ": are more copies begun ahead than there are slots, is the second for another "
                             "place, or must it wait for the first?");
  return what + explain_copy_wait(thread, {{}, thread.last_copy_wait_epoch});
}

std::string explain_open_copies(const Thread& thread) {
  const CopyGroup* const open = thread.open_copies.get();
  if (!open || open->copies.empty() || !thread.copy_groups_left || !thread.copy_groups_at_wait ||
      open->copies.front().epoch >= thread.last_copy_wait_epoch)
    return "";
  return print(
             "the wait at %s leaves out the newest %u groups, and the last cp.async before it are in none: ",
             own_place(thread.last_copy_wait_at).c_str(), thread.copy_groups_left) +
         "commit in each round";
}

std::string explain_wgmma_wait(const Thread& thread, uint32_t issued_in, const Thread::Order& barrier) {
  const Thread::Order& wait = thread.last_wgmma_wait;
  if (!issued_in || wait.epoch <= issued_in) return "no wait for wgmma comes between";
  const std::string text = "no wait had covered that by then: the wait for wgmma at " + own_place(wait.where);
  if (!thread.wgmma_groups_left)
    return text + (wait.epoch > barrier.epoch ? " comes after it" : " comes before the commit");
  return text + leaves_out(thread.wgmma_groups_left, "products");
}

namespace {

/// "smem.q", of "smem.q.panels[0][1][8]" and "smem.q[2][8]".
std::string outermost_array(const std::string& name) {
  const size_t member = name.find('.');
  return name.substr(0, name.find_first_of(".[", member == name.npos ? 0 : member + 1));
}

/// "smem.a[1]", of "smem.a[1].panels[0][1][8]"; empty if the outermost array is none of structs.
std::string slot_of(const std::string& name) {
  const std::string array = outermost_array(name);
  const size_t end = name.find(']');
  const bool is_slot = name[array.size()] == '[' && end + 1 < name.size() && name[end + 1] == '.';
  return is_slot ? name.substr(0, end + 1) : "";
}

/// Do copies of the thread fill both slots for one mbarrier, or in one group of cp.async?
bool are_filled_together(const Thread& thread, const std::string& one, const std::string& other) {
  SharedLayout& layout = thread.cluster.layout();
  const auto fills_both = [&](const std::set<std::string>& slots) {
    return slots.count(one) && slots.count(other);
  };
  std::map<const Mbarrier*, std::set<std::string>> loads;
  for (const Thread::CountedLoad& load : thread.last_loads)
    loads[load.barrier].insert(slot_of(layout.name_of(load.offset)));
  if (std::any_of(loads.begin(), loads.end(), [&](const auto& entry) { return fills_both(entry.second); }))
    return true;
  const auto fills = [&](const std::vector<Copy>& copies) {
    std::set<std::string> slots;
    for (const Copy& copy : copies)
      slots.insert(
          slot_of(layout.name_of(static_cast<size_t>(copy.shared - thread.block->shared.generic()))));
    return fills_both(slots);
  };
  const auto is_such = [&](const CopyGroup* group) {
    return group && group->issuer == &thread && fills(group->copies);
  };
  return is_such(thread.open_copies.get()) || is_such(thread.landing_copies) ||
         std::any_of(thread.landed_groups.begin(), thread.landed_groups.end(),
                     [&](const LandedGroup& group) { return fills(group.copies); }) ||
         std::any_of(
             thread.cluster.in_flight().begin(), thread.cluster.in_flight().end(),
             [&](const auto& operation) { return is_such(dynamic_cast<const CopyGroup*>(operation.get())); });
}

}  // namespace

std::string explain_operand_over_end(const Thread& reader, const Thread& writer, uint32_t epoch,
                                     size_t offset) {
  const Unobserved unobserved;
  SharedLayout& layout = reader.cluster.layout();
  const auto array_of = [&](size_t at) { return outermost_array(layout.name_of(at)); };
  const std::string array = array_of(offset);
  if (array.empty()) return "";
  std::string text;
  for (const auto& one : reader.block->warpgroups[reader.ids.rank / kWarpgroupThreads].operands_read) {
    if (!epoch || one.epoch != epoch) continue;
    if (offset < one.begin || one.end <= offset || reader.block->shared.bytes() <= one.start) continue;
    const std::string meant = array_of(one.start);
    if (meant.empty() || offset < one.start) return "";
    if (meant == array) {
      const std::string slot = slot_of(layout.name_of(one.start)), read = slot_of(layout.name_of(offset));
      if (slot == read || slot.empty() || read.empty() || are_filled_together(writer, slot, read)) return "";
      text =
          "the wgmma begins in " + slot + ", and reads on in " + read +
          print(": are the offsets of its descriptor (leading %u bytes, stride %u) too large, or exchanged?",
                one.leading, one.stride);
      continue;
    }
    constexpr size_t kStep = 16;
    size_t end = one.start / kStep * kStep;
    while (end < offset && array_of(end) == meant) end += kStep;
    text = print("the wgmma reads byte %zu behind the end of ", offset - end) + meant + ", in " + array +
           ": is the start address of its descriptor too large?";
  }
  return text;
}

std::string explain_slots_of_operands(const Thread& reader, const Thread& writer, uint32_t epoch,
                                      size_t offset) {
  const Unobserved unobserved;
  SharedLayout& layout = reader.cluster.layout();
  const std::string slot = slot_of(layout.name_of(offset)), array = slot.substr(0, slot.find('['));
  if (slot.empty() || !epoch) return "";
  const auto slots_of = [&](const Warpgroup& warpgroup, uint32_t issued_in) {
    std::set<std::string> slots;
    for (const auto& one : warpgroup.operands_read)
      if (one.epoch == issued_in && one.start < reader.block->shared.bytes())
        slots.insert(slot_of(layout.name_of(one.start)));
    return slots;
  };
  const unsigned own = reader.ids.rank / kWarpgroupThreads;
  const std::set<std::string> slots = slots_of(reader.block->warpgroups[own], epoch);
  if (slots.size() != 2 || !slots.count(slot) || slots.count("")) return "";
  const std::string& other = *slots.begin() == slot ? *slots.rbegin() : *slots.begin();
  const std::string number = other.substr(other.find('[')), meant = array + number;
  if (other.rfind(array + "[", 0) == 0 || meant == slot ||
      !are_filled_together(writer, slot, other.substr(0, other.find('[')) + slot.substr(slot.find('['))))
    return "";
  std::string text = "the wgmma multiplies " + slot + " and " + other + ", of different slots";
  for (const Warpgroup& warpgroup : reader.block->warpgroups)
    for (const auto& one : warpgroup.operands_read)
      if (&warpgroup != &reader.block->warpgroups[own] &&
          slots_of(warpgroup, one.epoch) == std::set<std::string>{meant, other})
        return text + print(", and warpgroup %td ", &warpgroup - reader.block->warpgroups.data()) + meant +
               " and " + other + print(": does the part of warpgroup %u begin behind the end of ", own) +
               meant + "?";
  return text + ": must both be of one slot?";
}

namespace {

/// The thread's last wait for TMA stores leaves out groups from this one on. Would it not, if the stores
/// before it were committed? Then where they are; else nothing.
std::string explain_uncommitted(const Thread& issuer, size_t first_left) {
  const size_t open_at_wait = first_left + issuer.store_groups_left;
  if (open_at_wait >= issuer.store_groups.size()) return "";
  const TmaStoreGroup& group = issuer.store_groups[open_at_wait];
  const auto& operations = group.race_operations;
  const uint32_t issued_in = operations.empty() ? 0 : operations.back().issue_epoch();  // at group.where
  if (!issued_in || issued_in >= issuer.last_store_wait.epoch) return "";
  const bool is_committed = open_at_wait + 1 < issuer.store_groups.size();
  if (is_committed && group.waits_before_commit != issuer.store_waits) return "";
  return ": the store before that wait, at " + own_place(group.where) + ", was in no group by then" +
         (is_committed ? ", because it is committed behind the wait, at " + own_place(group.committed_at)
                       : "") +
         ": commit first, and wait then";
}

}  // namespace

std::string explain_store_wait(const Thread& issuer, uint32_t issued_in, const Thread& writer,
                               const std::string& what_writes) {
  if (!issued_in) return "";
  const std::string store = "the TMA store of " + describe(issuer);
  const uint64_t committed =
      issuer.forgotten_store_groups + (issuer.store_groups.empty() ? 0 : issuer.store_groups.size() - 1);
  const bool has_waited = issuer.last_store_wait.epoch > issued_in;
  const auto explain_order_behind_wait = [&](Location where) {
    const std::string waits = describe(issuer) + " waits for its TMA store at " + own_place(where);
    // The lanes of a warp execute an stmatrix at once, so the issuer has come to this one behind its wait.
    if (issuer.warp == writer.warp && has_waited && what_writes == "stmatrix")
      return waits +
             print(
                 "; lanes do not run in step, so a __syncwarp must come between that wait and the stmatrix: "
                 "lane %u has not met lane %u there",
                 writer.lane, issuer.lane);
    // Else the store may as well have come before the tile's last writes.
    if (issuer.warp == writer.warp)
      return waits +
             print(
                 "; lanes do not run in step, so a __syncwarp must come between that wait and the next "
                 "writes, and another between writes and the store: as lane %u shows, one is missing",
                 writer.lane);
    return waits + ", and nothing orders that before the write of " + describe(writer) +
           (issuer.block_barriers.size() > 1 && writer.block_barriers.size() > 1
                ? ": a __syncthreads must come between"
                : ": a barrier must come between");
  };
  const std::string wait = "the wait for TMA stores at " + own_place(issuer.last_store_wait.where);
  for (size_t i = 0; i < issuer.store_groups.size(); ++i) {
    const auto& operations = issuer.store_groups[i].race_operations;
    if (std::none_of(operations.begin(), operations.end(),
                     [&](const AsyncOperation& one) { return one.issue_epoch() == issued_in; }))
      continue;
    const uint64_t group = issuer.forgotten_store_groups + i;
    if (group == committed)
      return "no tma_store_commit of the thread that issues " + store + " comes behind it" +
             (has_waited ? ", so that " + wait + " does not cover it" : "") +
             (has_waited && issuer.last_store_commit.line
                  ? ": the last commit, at " + own_place(issuer.last_store_commit) +
                        ", comes before the store"
                  : "");
    const TmaStoreGroup& closed = issuer.store_groups[i];
    if (has_waited && closed.waits_before_commit == issuer.store_waits)
      return wait + " comes before the tma_store_commit at " + own_place(closed.committed_at) +
             // In a loop, a commit in front of the store closes the store's group in the next round.
             (closed.committed_at.line < closed.where.line ? " of the next round" : "") +
             ", and so does not cover " + store + ": " +
             (closed.committed_at.line < closed.where.line
                  ? "the commit must come behind the store, and the wait behind the commit"
                  : "commit first, and wait then");
    if (group < issuer.read_store_groups_known) break;
    const auto& now = issuer.wait;
    if (!has_waited && now.kind == WaitKind::stores && group < now.argument >> 1 && &issuer != &writer)
      return explain_order_behind_wait(now.where);
    if (!has_waited) return "no tma_store_wait_read of the thread that issues " + store + " comes between";
    return wait +
           (issuer.store_groups_left == 1
                ? std::string(" leaves out the newest group")
                : print(" leaves out the %u newest groups", issuer.store_groups_left)) +
           " of stores, and with it " + store + explain_uncommitted(issuer, i);
  }
  if (!has_waited || &issuer == &writer) return "";
  return explain_order_behind_wait(issuer.last_store_wait.where);
}

namespace {

/// Does the thread's TMA store of the byte read what threads of other warps have written?
bool stores_of_other_warps(const Thread& issuer, size_t offset) {
  const auto store = std::find_if(
      issuer.last_stores.rbegin(), issuer.last_stores.rend(),
      [&](const Thread::StoredBox& one) { return one.offset <= offset && offset < one.offset + one.bytes; });
  if (store == issuer.last_stores.rend()) return false;
  constexpr size_t kStep = 16;
  for (size_t at = store->offset; at < store->offset + store->bytes; at += kStep) {
    const std::optional<unsigned> who =
        issuer.cluster.races()->last_writer(issuer.block->ids.rank_in_cluster, at);
    const auto is_own = [&](const Thread* lane) { return lane && who && lane->number == *who; };
    if (who && std::none_of(std::begin(issuer.warp->lanes), std::end(issuer.warp->lanes), is_own))
      return true;
  }
  return false;
}

}  // namespace

std::string explain_barrier_before_store_wait(const Thread& issuer, uint32_t issued_in, const Thread& writer,
                                              uint32_t written_in) {
  if (!issued_in || !written_in || issuer.block != writer.block) return "";
  size_t met = std::min(issuer.block_barriers.size(), writer.block_barriers.size());
  while (met && writer.block_barriers[met - 1].epoch >= written_in) --met;
  if (!met || issuer.block_barriers[met - 1].epoch < issued_in) return "";
  const Thread::Order& barrier = issuer.block_barriers[met - 1];
  const bool has_met_since = met < issuer.block_barriers.size();
  const Thread::Order& wait = issuer.last_store_wait;
  const bool waits_now = issuer.wait.kind == WaitKind::stores && !has_met_since;
  if (!waits_now && wait.epoch <= issued_in) return explain_store_wait(issuer, issued_in, writer);
  // A wait for what comes later is not the one that is meant.
  if (!waits_now &&
      (wait.epoch <= barrier.epoch || (has_met_since && wait.epoch > issuer.block_barriers[met].epoch)))
    return "";
  return "the last __syncthreads of both (" + own_place(barrier.where) + ") comes before " +
         describe(issuer) + " has waited for its TMA store (" +
         own_place(waits_now ? issuer.wait.where : wait.where) + "): the wait must come first";
}

std::string explain_store_before_write(const Thread& writer, const Thread& issuer,
                                       const RaceChecker::Unordered& accesses) {
  if (!accesses.may_write_before_issue || accesses.second_what != "TMA store" || !accesses.second_epoch ||
      accesses.lacks_fence || &writer == &issuer || writer.block != issuer.block)
    return "";
  const auto met_before = [](const Thread& thread, uint32_t epoch) {
    size_t met = 0;
    while (met < thread.block_barriers.size() && thread.block_barriers[met].epoch < epoch) ++met;
    return met;
  };
  const size_t met = met_before(writer, accesses.first_epoch);
  if (!met || met != met_before(issuer, accesses.second_epoch)) return "";
  // An mbarrier that either has waited for since explains more, or has told the writer of the store.
  const auto has_waited_since = [&](const Thread& thread, uint32_t epoch) {
    const auto& seen = thread.seen_before;
    return std::any_of(seen.begin(), seen.end(), [&](const Thread::Seen& one) {
      return one.epoch <= epoch && one.epoch > thread.block_barriers[met - 1].epoch;
    });
  };
  if (has_waited_since(writer, accesses.first_epoch) || has_waited_since(issuer, accesses.second_epoch))
    return "";
  if (writer.warp == issuer.warp && !stores_of_other_warps(issuer, accesses.offset)) return "";
  return "the last __syncthreads of both (" + own_place(issuer.block_barriers[met - 1].where) +
         ") comes before both: another must come between the write and the TMA store";
}

std::string explain_useless_wait(const Thread& issuer, const std::string& what, uint32_t issued_in,
                                 const Thread& writer, const Mbarrier::Arrival& arrival) {
  if (what == "wgmma") {
    const bool is_last = issuer.last_wgmma_wait.epoch <= arrival.epoch;
    const Thread::Order& wait = is_last ? issuer.last_wgmma_wait : issuer.wgmma_wait_before;
    const unsigned left = is_last ? issuer.wgmma_groups_left : issuer.wgmma_groups_left_before;
    const bool is_between =
        arrival.thread == &issuer && issued_in < wait.epoch && wait.epoch <= arrival.epoch;
    return is_between && left
               ? ": the wait for wgmma at " + own_place(wait.where) + leaves_out(left, "products")
               : "";
  }
  if (what != "TMA store" || issuer.last_store_wait.epoch <= issued_in) return "";
  const std::string order = explain_store_wait(issuer, issued_in, writer);
  return order.empty() ? "" : ": " + order;
}

std::string explain_source_of_store(const Thread& writer, const Thread& reader,
                                    const RaceChecker::Unordered& accesses) {
  if (writer.warp == reader.warp || writer.block != reader.block) return "";
  const Unobserved unobserved;
  Cluster& cluster = reader.cluster;
  SharedLayout& layout = cluster.layout();
  const auto store =
      std::find_if(reader.last_stores.rbegin(), reader.last_stores.rend(), [&](const Thread::StoredBox& one) {
        return one.offset <= accesses.offset && accesses.offset < one.offset + one.bytes;
      });
  if (store == reader.last_stores.rend()) return "";
  const size_t end_of_store = store->offset + store->bytes;
  const auto [begin, end] = array_around(layout, reader.block->shared.bytes(), store->offset);
  if (end_of_store > end) return "";
  size_t first = end, last = begin;  // of what its warp has written
  constexpr size_t kStep = 16;
  size_t own = 0;
  for (size_t at = begin; at < end; at += kStep) {
    const std::optional<unsigned> who = cluster.races()->last_writer(reader.block->ids.rank_in_cluster, at);
    const auto is_own = [&](const Thread* lane) { return lane && who && lane->number == *who; };
    if (std::none_of(std::begin(reader.warp->lanes), std::end(reader.warp->lanes), is_own)) continue;
    if (store->offset <= at && at < end_of_store) return "";
    first = std::min(first, at);
    last = at + kStep;
    own += kStep;
  }
  if (own != store->bytes || last - first != own) return "";
  const std::string array = without_row(layout.name_of(first));
  const auto name_of_bytes = [&](size_t from, size_t to) {
    return layout.name_of(from) + " to " + layout.name_of(to - 1).substr(array.size());
  };
  return print("warp %u stores ", reader.warp->index) + name_of_bytes(store->offset, end_of_store) +
         print(", where warp %u writes, and not what it has written itself, ", writer.warp->index) +
         name_of_bytes(first, last) + ": is the row of its source another warp's?";
}

}  // namespace cpu_device
