/// @file
/// Happens-before between clusters of one launch.
#include "common/cpu_device/kernel/grid_order.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "common/cpu_device/base/warp.hpp"
#include "common/cpu_device/observe/forbidden_memory.hpp"
#include "common/cpu_device/observe/global_accesses.hpp"
#include "common/cpu_device/observe/hooks.hpp"
#include "common/cpu_device/observe/source_lines.hpp"

namespace cpu_device {
namespace {

/// Operations that reports may speak of.
constexpr size_t kRemembered = 1024;

template <class Knowledge>
void join(Knowledge& to, const Knowledge& from) {
  for (const auto& [cluster, epochs] : from) {
    auto& known = to[cluster];
    known.resize(std::max(known.size(), epochs.size()));
    for (size_t i = 0; i < epochs.size(); ++i) known[i] = std::max(known[i], epochs[i]);
  }
}

/// Who has the old knowledge keeps it.
template <class Knowledge>
void join_shared(std::shared_ptr<const Knowledge>& to, const Knowledge& from) {
  Knowledge joined = to ? *to : Knowledge{};
  join(joined, from);
  to = std::make_shared<const Knowledge>(std::move(joined));
}

bool covers(const std::vector<uint32_t>& epochs, unsigned thread, uint32_t epoch) {
  return thread < epochs.size() && epochs[thread] >= epoch;
}

/// Not what a kernel has allocated itself, which is the next thread's after it was freed.
bool is_shared_by_threads(const std::byte* address) {
  const MemoryGuard* const guard = observers().guard;
  return is_device_variable(address) || (guard && guard->is_allocated(address));
}

/// A line that loads and stores the same bytes updates them, `count[i]++`.
bool are_of_one_line(const void* one, const void* other) {
  return one && other && own_line({"", 0, one, nullptr}).place == own_line({"", 0, other, nullptr}).place;
}

std::string place(Location where) { return fmt::format("{}:{}", short_path(where.file), where.line); }

std::string name(const Uint3& block) { return fmt::format("block ({},{},{})", block.x, block.y, block.z); }

/// "block (0,0,0) warp 9 lane 0".
std::string warp_and_lane(const GridOrder::Who& who) {
  return fmt::format("{} warp {} lane {}", name(who.block), who.rank / kWarpLanes, who.rank % kWarpLanes);
}

/// Why two boxes overlap that begin `apart` from each other along one side, on which a box has `extent`, and
/// `across` on the other side.
std::string explain_distance(int apart, int extent, int across, const char* sides, const char* to,
                             const char* too_large) {
  // Where the one coordinate takes the steps that are meant for the other.
  const char* const exchanged = across > 1 && apart % across == 0 ? "are row and column exchanged, or " : "";
  return fmt::format(": a box has {} {}, and the next begins {} {}: {}is the box of the tensor map {}?",
                     extent, sides, apart, to, exchanged, too_large);
}

/// Of two stores of TMA: where they meet, and why, or else this question.
std::string explain_boxes(const GridOrder::Place& one, const GridOrder::Place& other,
                          const std::string& question) {
  if (one.row == other.row && one.column == other.column) {
    const bool is_one_call = one.call.line && one.call == other.call;
    return fmt::format("both store the box from row {}, column {} on{}: {}", one.row, one.column,
                       is_one_call ? " at " + place(one.call) : "", question);
  }
  const std::string text =
      fmt::format("the box from row {}, column {} on and the box from row {}, column {} on overlap", one.row,
                  one.column, other.row, other.column);
  const int rows_apart = std::abs(one.row - other.row), columns_apart = std::abs(one.column - other.column);
  const GridOrder::Place &upper = one.row < other.row ? one : other,
                         &left = one.column < other.column ? one : other;
  if (columns_apart == 0 && rows_apart < upper.rows)
    return text + explain_distance(rows_apart, upper.rows, upper.columns, "rows",
                                   rows_apart == 1 ? "row below" : "rows below", "too high");
  if (rows_apart == 0 && columns_apart < left.columns)
    return text + explain_distance(columns_apart, left.columns, left.rows, "columns",
                                   columns_apart == 1 ? "column to the right" : "columns to the right",
                                   "too wide");
  return text + fmt::format(": a box has {} rows and {} columns: {}", one.rows, one.columns, question);
}

/// A thread's box begins further from its last one than that is wide, or high; else empty.
std::string ask_for_gap(const GridOrder::Place& place, const Uint3& block) {
  const auto gap = [&](const char* side, int before, int extent) {
    return fmt::format(
        "the box that {} sends before this one begins at {} {} and has {} {}s: should this one begin at {} "
        "{}?",
        name(block), side, before, extent, side, side, before + extent);
  };
  if (place.row_before < 0 || place.column_before < 0) return "";
  if (place.row == place.row_before && place.column > place.column_before + place.columns)
    return gap("column", place.column_before, place.columns);
  if (place.column == place.column_before && place.row > place.row_before + place.rows)
    return gap("row", place.row_before, place.rows);
  return "";
}

/// Boxes of one thread.
std::string question_of_own_boxes(const GridOrder::Place& first, const GridOrder::Place& second) {
  if (!first.call.line || !(first.call == second.call))
    return "should each store a part of its own? To overwrite it, wait first, with tma_store_wait, until the "
           "first has written";
  return "should the row or the column go on from one box to the next?";
}

/// Boxes of two blocks.
std::string question_of_boxes(const GridOrder::Place& first, const Uint3& block_of_first,
                              const GridOrder::Place& second, const Uint3& block_of_second) {
  std::string text = ask_for_gap(first, block_of_first);
  if (text.empty()) text = ask_for_gap(second, block_of_second);
  return text.empty() ? "do the tiles of two blocks overlap, or do both have one?" : text;
}

}  // namespace

// --- the order -----------------------------------------------------------------------------------------

GridOrder::Knowledge GridOrder::known_to(RaceChecker& races, unsigned thread) {
  Knowledge known{{cluster_, races.release_epochs(thread)}};
  for (const Acquired& acquired : acquired_)
    if (races.knows(thread, acquired.thread, acquired.epoch)) join(known, *acquired.what);
  return known;
}

void GridOrder::acquire(unsigned thread, uint32_t epoch, const SharedKnowledge& what) {
  const bool is_known = std::any_of(acquired_.begin(), acquired_.end(), [&](const Acquired& acquired) {
    return acquired.thread == thread && acquired.what == what;
  });
  if (what && !is_known) acquired_.push_back({thread, epoch, what});
}

const GridOrder::Fence* GridOrder::last_fence(unsigned thread) const {
  const auto last = std::find_if(fences_.rbegin(), fences_.rend(),
                                 [&](const Fence& fence) { return fence.thread == thread; });
  return last == fences_.rend() ? nullptr : &*last;
}

void GridOrder::fence(RaceChecker& races, const Who& who, Location where, bool is_sequentially_consistent) {
  const uint32_t epoch = races.epoch(who.thread);
  for (const Pending& pending : pending_) {
    if (pending.thread == who.thread) acquire(who.thread, epoch, pending.message.released);
    if (is_sequentially_consistent && races.knows(who.thread, pending.thread, pending.epoch))
      acquire(who.thread, epoch, pending.message.fenced);
  }
  Knowledge known = known_to(races, who.thread);
  // Of two fences with nothing in between that others could know, the second does for both.
  if (!fences_.empty() && fences_.back().thread == who.thread && fences_.back().epoch + 2 == epoch &&
      fences_.back().is_sequentially_consistent == is_sequentially_consistent)
    fences_.pop_back();
  fences_.push_back({who.thread, epoch, where, is_sequentially_consistent,
                     std::make_shared<const Knowledge>(std::move(known))});
}

void GridOrder::before_atomic(RaceChecker& races, const Who& who, const Atomic& atomic, bool releases) {
  const Fence* const own_fence = last_fence(who.thread);
  Operation& operation = remember(races, who, atomic);
  operation.changes = true;
  if (own_fence) operation.fence = own_fence->where;
  const Knowledge known = known_to(races, who.thread);
  operation.known = known.at(cluster_);
  if (!atomic.is_of_device) return;
  Message& message = messages_[atomic.object];
  if (releases)
    join_shared(message.released, known);
  else if (own_fence)
    join_shared(message.released, *own_fence->known);
  for (const Fence& fence : fences_) {
    if (fence.is_sequentially_consistent && races.knows(who.thread, fence.thread, fence.epoch))
      join_shared(message.fenced, *fence.known);
  }
  operation.released = of_this_cluster(message.released);
  operation.fenced = of_this_cluster(message.fenced);
}

void GridOrder::after_atomic(RaceChecker& races, const Who& who, const Atomic& atomic, bool acquires) {
  const bool has_begun = !operations_.empty() && operations_.back().cluster == cluster_ &&
                         operations_.back().who.thread == who.thread &&
                         operations_.back().atomic.object == atomic.object && operations_.back().changes &&
                         !operations_.back().looks;
  const uint32_t epoch = races.epoch(who.thread);
  Operation& operation = has_begun ? operations_.back() : remember(races, who, atomic);
  operation.looks = true;
  operation.acquires = atomic.is_of_device && acquires;
  operation.epoch = epoch;
  const auto found = messages_.find(atomic.object);
  if (found == messages_.end() || !atomic.is_of_device) return;
  Message message = found->second;
  if (acquires) acquire(who.thread, epoch, std::exchange(message.released, nullptr));
  const bool is_known = std::any_of(pending_.begin(), pending_.end(), [&](const Pending& pending) {
    return pending.thread == who.thread && pending.message.released == message.released &&
           pending.message.fenced == message.fenced;
  });
  if (!is_known) pending_.push_back({who.thread, epoch, std::move(message)});
}

bool GridOrder::is_ordered(const RaceChecker& races, unsigned thread, const Write& write) const {
  return std::any_of(acquired_.begin(), acquired_.end(), [&](const Acquired& acquired) {
    if (!races.knows(thread, acquired.thread, acquired.epoch)) return false;
    const auto known = acquired.what->find(write.cluster);
    return known != acquired.what->end() && covers(known->second, write.who.thread, write.epoch);
  });
}

bool GridOrder::is_ordered_in_cluster(const RaceChecker& races, unsigned thread, const Write& write) const {
  return races.knows(thread, write.who.thread, write.epoch);
}

/// Whether a volatile load of `thread` comes after an atomic operation that tells of the write by
/// __threadfence(). It needs a fence between the two by PTX; but the CUDA programming guide's own sum over
/// blocks has none, and a load that cannot come from the first-level cache finds what was written.
bool GridOrder::has_seen(const RaceChecker& races, unsigned thread, const Write& write) const {
  const auto tells = [&](const SharedKnowledge& knowledge) {
    if (!knowledge) return false;
    const auto known = knowledge->find(write.cluster);
    return known != knowledge->end() && covers(known->second, write.who.thread, write.epoch);
  };
  return std::any_of(pending_.begin(), pending_.end(), [&](const Pending& pending) {
    return races.knows(thread, pending.thread, pending.epoch) && tells(pending.message.fenced);
  });
}

/// Whether atomic operations lead from a load of another cluster to a store of `thread`, with fences or
/// without: a load whose value the kernel has used does not move behind what comes after it.
bool GridOrder::may_come_after(const RaceChecker& races, unsigned thread, const Write& load) const {
  if (is_ordered(races, thread, load) || has_seen(races, thread, load)) return true;
  // What is forgotten may have led there.
  if (operations_.size() == kRemembered && load.cluster <= operations_.front().cluster) return true;
  for (const Operation& looks : operations_) {
    if (looks.cluster != cluster_ || !looks.looks || !races.knows(thread, looks.who.thread, looks.epoch))
      continue;
    for (const Operation& changes : operations_)
      if (changes.cluster == load.cluster && changes.changes &&
          changes.atomic.object == looks.atomic.object && covers(changes.known, load.who.thread, load.epoch))
        return true;
  }
  return false;
}

/// A load by another thread that `now` does not come after.
std::string GridOrder::overwritten_read(const RaceChecker& races, const std::byte* address, size_t bytes,
                                        const Write& now) {
  std::string race;
  reads_.find(address, bytes, [&](const LastReads::Read& read) {
    const bool is_own = read.cluster == cluster_;
    if ((is_own && read.thread == now.who.thread) || !is_shared_by_threads(address)) return false;
    const Write load{read.cluster,      readers_.at(read.cluster)[read.thread],
                     read.epoch,        places_[read.place],
                     AccessKind::plain, nullptr,
                     /*is_load=*/true};
    if (!is_own) {
      if (unordered_store_.address || may_come_after(races, now.who.thread, load)) return false;
      unordered_store_ = {address, {address, address + bytes}, [this, &races, load, now] {
                            return describe_race(races, load, now, /*second_writes=*/true);
                          }};
      return false;
    }
    if (is_ordered_in_cluster(races, now.who.thread, load) || is_ordered(races, now.who.thread, load))
      return false;
    race = describe_race_in_cluster(load, now, /*second_writes=*/true, address, bytes);
    return true;
  });
  return race;
}

std::string GridOrder::changed_by_last_store() {
  if (!unordered_store_.address) return "";
  const UnorderedStore store = std::exchange(unordered_store_, {});
  return std::equal(store.before.begin(), store.before.end(), store.address) ? "" : store.race();
}

template <class Function>
void GridOrder::LastReads::for_each_word(const std::byte* address, size_t bytes, bool makes,
                                         const Function& function) {
  const auto begin = reinterpret_cast<uintptr_t>(address), end = begin + bytes;
  for (uintptr_t word = begin / kWordBytes; word * kWordBytes < end; ++word) {
    const uintptr_t number = word / kPageWords;
    if (!last_page_ || number != last_number_) {
      auto page = pages_.find(number);
      if (page == pages_.end()) {
        if (!makes) continue;
        page = pages_.emplace(number, Page(kPageWords)).first;
      }
      last_page_ = &page->second;
      last_number_ = number;
    }
    uint8_t mask = 0;
    for (uintptr_t byte = 0; byte < kWordBytes; ++byte) {
      const uintptr_t at = word * kWordBytes + byte;
      if (at >= begin && at < end) mask = static_cast<uint8_t>(mask | 1u << byte);
    }
    if (function((*last_page_)[word % kPageWords], mask)) return;
  }
}

void GridOrder::LastReads::note(const std::byte* address, size_t bytes, const Read& read) {
  for_each_word(address, bytes, /*makes=*/true, [&](Word& word, uint8_t mask) {
    const auto is_same = [&](const Read& other) {
      return other.mask && other.cluster == read.cluster && other.thread == read.thread;
    };
    if (word[0].mask && word[0].cluster != read.cluster) word[2] = word[0];
    if (!is_same(word[0])) std::swap(word[0], word[1]);
    if (is_same(word[0]) && word[0].epoch == read.epoch) mask |= word[0].mask;
    word[0] = read;
    word[0].mask = mask;
    return false;
  });
}

template <class Function>
void GridOrder::LastReads::find(const std::byte* address, size_t bytes, const Function& function) {
  for_each_word(address, bytes, /*makes=*/false, [&](const Word& word, uint8_t mask) {
    return std::any_of(word.begin(), word.end(),
                       [&](const Read& read) { return (read.mask & mask) && function(read); });
  });
}

void GridOrder::LastWrites::for_each(const std::byte* address, size_t bytes,
                                     const std::function<bool(const Write&)>& function) const {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  uint32_t told = 0;
  for (uintptr_t at = begin, end_of_page; at < begin + bytes; at = end_of_page) {
    end_of_page = std::min(begin + bytes, (at / kPageBytes + 1) * kPageBytes);
    const auto page = pages_.find(at / kPageBytes);
    if (page == pages_.end()) continue;
    for (uintptr_t byte = at; byte < end_of_page; ++byte) {
      const uint32_t number = page->second[byte % kPageBytes];
      if (number == 0 || number == told) continue;
      if (!function(stores_[number - 1].write)) return;
      told = number;
    }
  }
}

void GridOrder::LastWrites::set(const std::byte* address, size_t bytes, const Write& write) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  uint32_t number = 0;  // of the store that this one replaces wholly, as those in loops do
  for (uintptr_t at = begin, end_of_page; at < begin + bytes; at = end_of_page) {
    end_of_page = std::min(begin + bytes, (at / kPageBytes + 1) * kPageBytes);
    Page& page = pages_[at / kPageBytes];
    page.resize(kPageBytes);
    if (at == begin && page[at % kPageBytes]) {
      const Store& before = stores_[page[at % kPageBytes] - 1];
      if (before.address == address && before.bytes == bytes) number = page[at % kPageBytes];
    }
    if (!number) {
      stores_.emplace_back();
      number = static_cast<uint32_t>(stores_.size());
    }
    std::fill(page.begin() + at % kPageBytes, page.begin() + (end_of_page - 1) % kPageBytes + 1, number);
  }
  if (number) stores_[number - 1] = {address, bytes, write};
}

std::string GridOrder::access(const RaceChecker& races, const Who& who, const std::byte* address,
                              size_t bytes, bool write, AccessKind kind, const Place& place) {
  const bool is_plain_load = !write && kind == AccessKind::plain && place.return_address;
  if (is_plain_load) {
    if (last_loads_.size() <= who.thread) last_loads_.resize(who.thread + 1);
    LastLoads& loads = last_loads_[who.thread];
    const unsigned next = loads.next++ % LastLoads::kCount;
    loads.address[next] = address;
    loads.place[next] = place.return_address;
  }
  if (kind == AccessKind::atomic) note_guesses(who, address);
  Write now{cluster_, who, races.epoch(who.thread), place, kind, nullptr};
  if (is_plain_load) {
    const auto [number, is_new] =
        place_numbers_.try_emplace(place.return_address, static_cast<uint32_t>(places_.size()));
    if (is_new) places_.push_back(place);
    if (!readers_of_this_) readers_of_this_ = &readers_[cluster_];
    if (readers_of_this_->size() <= who.thread) readers_of_this_->resize(who.thread + 1);
    (*readers_of_this_)[who.thread] = who;
    reads_.note(
        address, bytes,
        {static_cast<uint32_t>(cluster_), now.epoch, number->second, static_cast<uint16_t>(who.thread), 0});
  }
  if (std::string race = changed_by_last_store(); !race.empty()) return race;
  if (!write && (address + bytes <= first_written_ || address >= written_end_)) return "";
  if (write && kind == AccessKind::strong)
    if (const Fence* const fence = last_fence(who.thread)) now.released = fence->known;
  std::string wrong;
  bool is_changed_atomically = false;
  writes_.for_each(address, bytes, [&](const Write& last) {
    is_changed_atomically = is_changed_atomically || last.kind == AccessKind::atomic;
    if (kind == AccessKind::atomic && last.released) join_shared(messages_[address].released, *last.released);
    if (is_atomic_with(last.kind, kind) || is_ordered(races, who.thread, last)) return true;
    if (last.cluster == cluster_) {
      const bool are_strong = last.kind != AccessKind::plain && kind != AccessKind::plain;
      // A load may be the guess of a loop of atomicCAS.
      const bool is_guess = last.kind == AccessKind::atomic && !write;
      const bool are_of_one_thread = last.who.thread == who.thread;
      const bool is_in_flight = write && are_of_one_thread && last.place.is_box && place.is_box &&
                                last.place.group >= place.waited_for;
      if (are_strong || is_guess || !is_shared_by_threads(address) ||
          (is_ordered_in_cluster(races, who.thread, last) && !is_in_flight))
        return true;
      if (write && place.return_address && last.place.return_address == place.return_address) {
        note_stored_twice(address, last, now);
        unordered_store_ = {address, {address, address + bytes}, [this, last, now, address, bytes] {
                              return describe_race_in_cluster(last, now, /*second_writes=*/true, address,
                                                              bytes);
                            }};
        return true;
      }
      wrong = describe_race_in_cluster(last, now, write, address, bytes);
      return false;
    }
    if (kind == AccessKind::strong && !write && has_seen(races, who.thread, last)) return true;
    // Who has looked at it atomically since loads nothing older.
    if (last.kind == AccessKind::atomic && !write && looked_at_.count(address)) return true;
    std::string race = describe_race(races, last, now, write);
    if (last.kind == AccessKind::atomic && is_plain_load) {
      suspect(std::move(race), now, address);
      return true;
    }
    wrong = std::move(race);
    return false;
  });
  if (is_plain_load && is_changed_atomically) {
    std::vector<Write>& loads = plain_loads_[address];
    std::erase_if(loads,
                  [&](const Write& load) { return load.place.return_address == place.return_address; });
    loads.push_back(now);
    loads.back().is_load = true;
  }
  if (kind == AccessKind::atomic) looked_at_.insert(address);
  if (const auto loads = plain_loads_.find(address);
      write && kind == AccessKind::atomic && loads != plain_loads_.end()) {
    for (const Write& load : loads->second)
      if (load.cluster != cluster_ && !is_ordered(races, who.thread, load))
        suspect(describe_race(races, load, now, true), load, address);
  }
  if (wrong.empty() && write && kind == AccessKind::plain && place.return_address)
    wrong = overwritten_read(races, address, bytes, now);
  if (wrong.empty() && write) {
    writes_.set(address, bytes, now);
    first_written_ = first_written_ ? std::min(first_written_, address) : address;
    written_end_ = std::max(written_end_, address + bytes);
  }
  return wrong;
}

void GridOrder::note_stored_twice(const std::byte* address, const Write& first, const Write& second) {
  constexpr unsigned kWarpgroup = 4 * kWarpLanes;
  const unsigned one = first.who.rank, other = second.who.rank;
  const Uint3 &block = first.who.block, &same = second.who.block;
  const bool is_one_block = block.x == same.x && block.y == same.y && block.z == same.z;
  if (first.is_load || !is_one_block || one / kWarpLanes == other / kWarpLanes) return;
  const bool are_warpgroups = one / kWarpgroup != other / kWarpgroup;
  const unsigned size = are_warpgroups ? kWarpgroup : kWarpLanes;
  const unsigned lower = std::min(one, other) / size, upper = std::max(one, other) / size;
  StoredTwice& noted = stored_twice_;
  if (!noted.first)
    noted = {address,        address,        block,
             are_warpgroups, {lower, upper}, own_line({"", 0, second.place.return_address, nullptr}).place};
  const bool are_the_same = noted.block.x == block.x && noted.block.y == block.y &&
                            noted.block.z == block.z && noted.are_warpgroups == are_warpgroups &&
                            noted.parts[0] == lower && noted.parts[1] == upper;
  if (!are_the_same) return;
  noted.first = std::min(noted.first, address);
  noted.last = std::max(noted.last, address);
}

void GridOrder::note_guesses(const Who& who, const std::byte* object) {
  if (who.thread < last_loads_.size()) {
    const LastLoads& loads = last_loads_[who.thread];
    for (unsigned i = 0; i < LastLoads::kCount; ++i)
      if (loads.address[i] == object) guesses_.insert(loads.place[i]);
  }
  for (const Suspicion& suspicion : suspicions_)
    if (suspicion.address == object && suspicion.cluster == cluster_ && suspicion.thread == who.thread)
      guesses_.insert(suspicion.load);
}

void GridOrder::suspect(std::string text, const Write& load, const std::byte* address) {
  const void* const place = load.place.return_address;
  const bool is_known = std::any_of(suspicions_.begin(), suspicions_.end(),
                                    [&](const Suspicion& known) { return known.load == place; });
  if (!is_known && !guesses_.count(place))
    suspicions_.push_back({std::move(text), place, address, load.cluster, load.who.thread});
}

bool GridOrder::find_writer(const std::byte* address, Uint3& block) const {
  bool is_found = false;
  writes_.for_each(address, 1, [&](const Write& write) {
    is_found = !write.is_load;
    block = write.who.block;
    return false;
  });
  return is_found;
}

std::string GridOrder::suspicion() const {
  for (const Suspicion& suspicion : suspicions_)
    if (!guesses_.count(suspicion.load)) return suspicion.text;
  return "";
}

// --- reports -------------------------------------------------------------------------------------------

namespace {

/// Two threads of a cluster store the same: what tells them apart, if it is one thing, may have been left
/// out.
/// @param where that would be: "the index"
/// @param otherwise what to ask where they differ in more
std::string ask_for_parts(const GridOrder::Who& first, const GridOrder::Who& second, const char* where,
                          const char* otherwise) {
  constexpr unsigned kWarpgroupThreads = 4 * kWarpLanes;
  const unsigned one = first.rank, other = second.rank;
  const Uint3 &here = first.block, &there = second.block;
  std::string who, what;
  const auto say = [&](const char* format, unsigned threads, const char* left_out) {
    who = fmt::format(fmt::runtime(format), one / threads, other / threads);
    what = left_out;
  };
  if (here.x != there.x || here.y != there.y || here.z != there.z) {
    if (one != other) return otherwise;
    who = "the same thread of two blocks of a cluster";
    what = "the block";
  } else if (one % kWarpgroupThreads == other % kWarpgroupThreads) {
    say("the same thread of warpgroups {} and {}", kWarpgroupThreads, "the warpgroup");
  } else if (one % kWarpLanes == other % kWarpLanes) {
    say("the same lane of warps {} and {}", kWarpLanes, "the warp");
  } else if (one / kWarpLanes == other / kWarpLanes) {
    who = "two lanes of one warp";
    what = "the lane";
  } else {
    return otherwise;
  }
  return fmt::format(
      "they are {}: does {} leave {} out, do their parts overlap, or should one of them store alone?", who,
      where, what);
}

/// Two blocks store the same elements: why may that be?
std::string explain_common_elements(const GridOrder::Who& first, const GridOrder::Who& second) {
  const Uint3 &one = first.block, &other = second.block;
  std::string differing;
  for (const auto& [name, differs] :
       {std::pair('x', one.x != other.x), std::pair('y', one.y != other.y), std::pair('z', one.z != other.z)})
    if (differs) differing += name;
  if (first.rank == second.rank && differing.size() == 1)
    return fmt::format(
        "the same thread of both, and the blocks differ in {0} alone: is blockIdx.{0} missing where a block "
        "finds its part, or do parts overlap?",
        differing);
  return "their parts overlap, or an index goes beyond the end of a row into the next: is a bound missing, "
         "or that of another side?";
}

}  // namespace

std::string GridOrder::describe_race(const RaceChecker& races, const Write& first, const Write& second,
                                     bool second_writes) const {
  const std::string storing = name(first.who.block), coming = name(second.who.block);
  const auto what = [](const Write& access, bool writes) {
    return access.place.what ? access.place.what : writes ? "store" : "load";
  };
  const bool first_writes = !first.is_load;
  const std::string why = explain(races, first, second);
  std::string text = "race in global memory: ";
  if (first.kind == AccessKind::atomic || second.kind == AccessKind::atomic) {
    const bool first_is_atomic = first.kind == AccessKind::atomic;
    const Write &atomic = first_is_atomic ? first : second, &plain = first_is_atomic ? second : first;
    const bool plain_writes = first_is_atomic ? second_writes : first_writes;
    text += fmt::format("a plain {} of {} and {} of {} touch the same bytes, and {}",
                        plain_writes ? "store" : "load", name(plain.who.block), atomic.place.what,
                        name(atomic.who.block), why.empty() ? "nothing orders the two" : why);
  } else if (first.is_load) {
    text += fmt::format(
        "{} overwrites what {} has read, and nothing orders the two: blocks have no order, so the store may "
        "come first: use a second buffer, or a second launch",
        coming, storing);
  } else if (second_writes && first.place.return_address == second.place.return_address &&
             first.place.call == second.place.call) {
    text += storing + " and " + coming +
            " store the same elements by the same line, and nothing orders the two" +
            (second.place.is_box ? "\n  " + explain_boxes(first.place, second.place,
                                                          question_of_boxes(first.place, first.who.block,
                                                                            second.place, second.who.block))
                                 : ": " + explain_common_elements(first.who, second.who));
  } else if (why.empty()) {
    const bool is_update = are_of_one_line(first.place.return_address, second.place.return_address);
    text += fmt::format(
        "{} {} what {} has stored, and no atomic operation that {} has looked at tells it that {} has "
        "stored: "
        "{}",
        coming, second_writes ? "overwrites" : "reads", storing, coming, storing,
        is_update ? "where the line adds to it, use atomicAdd; else blocks need a part each, a second buffer "
                    "or a second launch"
                  : "use a second buffer, or a second launch");
  } else {
    text += "blocks hand over, and " + why;
  }
  return text + fmt::format("\n  first {} by {}\n  then  {} by {}", what(first, first_writes),
                            describe(first), what(second, second_writes), describe(second));
}

bool GridOrder::is_read_by_line(const Place& of_store, const std::byte* address, size_t bytes) {
  bool is_read = false;
  reads_.find(address, bytes, [&](const LastReads::Read& read) {
    is_read = read.cluster == cluster_ &&
              are_of_one_line(of_store.return_address, places_[read.place].return_address);
    return is_read;
  });
  return is_read;
}

std::string GridOrder::describe_race_in_cluster(const Write& first, const Write& second, bool second_writes,
                                                const std::byte* address, size_t bytes) {
  const Uint3 &one = first.who.block, &other = second.who.block;
  const bool is_one_block = one.x == other.x && one.y == other.y && one.z == other.z;
  const auto thread = [&](const Write& access) {
    return fmt::format("thread {}{}", access.who.rank, is_one_block ? "" : " of " + name(access.who.block));
  };
  const auto what = [](const Write& access, bool writes) {
    return access.place.what ? access.place.what : writes ? "store" : "load";
  };
  const std::string places = fmt::format("\n  first {} by {}\n  then  {} by {}", what(first, !first.is_load),
                                         describe(first), what(second, second_writes), describe(second));
  if (first.place.is_box && second.place.is_box && second_writes && first.who.thread == second.who.thread)
    return fmt::format(
        "race in global memory: {} stores the same elements twice by TMA, and nothing orders the two\n  {}{}",
        warp_and_lane(first.who),
        explain_boxes(first.place, second.place, question_of_own_boxes(first.place, second.place)), places);
  // No barrier helps where two roles have the same tile.
  if (first.place.is_box && second.place.is_box && second_writes)
    return fmt::format(
        "race in global memory: {} and {} both store the same elements, and nothing orders the two\n  {}{}",
        warp_and_lane(first.who),
        is_one_block
            ? fmt::format("warp {} lane {}", second.who.rank / kWarpLanes, second.who.rank % kWarpLanes)
            : warp_and_lane(second.who),
        explain_boxes(first.place, second.place,
                      ask_for_parts(first.who, second.who, "the row or the column",
                                    "should each store tiles of its own?")),
        places);
  const bool is_one_line = are_of_one_line(first.place.return_address, second.place.return_address);
  if (is_one_line && second_writes && !first.is_load && !is_read_by_line(second.place, address, bytes))
    return fmt::format(
        "race in global memory: {} and {} of {} store the same element by the same line, and nothing orders "
        "the two: {}{}",
        thread(first), thread(second), name(other),
        ask_for_parts(first.who, second.who, "the index", "should each store elements of its own?"), places);
  const std::string verb = first.is_load   ? "overwrites what " + thread(first) + " may still read"
                           : second_writes ? "overwrites what " + thread(first) + " has written"
                                           : "reads what " + thread(first) + " writes";
  return fmt::format("race in global memory: {}{} {}, and no barrier or wait orders the two: {}{}",
                     thread(second), is_one_block ? " of " + name(one) : "", verb,
                     is_one_line
                         ? "a barrier is missing, or an atomic operation where the line updates what is there"
                     : !is_one_block ? "a barrier of both blocks, grid.sync() or cluster.sync(), is missing"
                     : second_writes && !first.is_load
                         ? "a __syncthreads() is missing, or each thread should store elements of its own"
                         : "a __syncthreads() is missing",
                     places);
}

/// What one of the two sides lacks.
struct GridOrder::Explanation {
  int steps = 0;     ///< of the side that are there
  std::string text;  ///< empty if all are
};

GridOrder::Operation& GridOrder::remember(const RaceChecker& races, const Who& who, const Atomic& atomic) {
  if (operations_.size() == kRemembered) operations_.pop_front();
  Operation& operation = operations_.emplace_back();
  operation.cluster = cluster_;
  operation.who = who;
  operation.epoch = races.epoch(who.thread);
  operation.atomic = atomic;
  return operation;
}

std::vector<uint32_t> GridOrder::of_this_cluster(const SharedKnowledge& knowledge) const {
  if (!knowledge) return {};
  const auto known = knowledge->find(cluster_);
  return known == knowledge->end() ? std::vector<uint32_t>{} : known->second;
}

/// The side that stores: the store, then what lets `operation` tell of it.
GridOrder::Explanation GridOrder::explain_first(const Write& first, const Operation& operation) const {
  const auto is_in = [&](const std::vector<uint32_t>& epochs) {
    return covers(epochs, first.who.thread, first.epoch);
  };
  const std::string thread = fmt::format("thread {}", operation.who.rank), at = place(operation.atomic.where);
  if (!is_in(operation.known)) {
    if (first.who.thread == operation.who.thread)
      return {0, fmt::format("{} stores after its atomic operation at {}", thread, at)};
    return {
        0, fmt::format("{} does the atomic operation at {} before it has met thread {}, which stores: a "
                       "__syncthreads() belongs between the two, or in a role a named barrier of its threads",
                       thread, at, first.who.rank)};
  }
  if (is_in(operation.released)) return {2, ""};
  if (!operation.atomic.is_of_device)
    return {1, fmt::format("the atomic operation of {} at {} has the scope of its block, and tells others "
                           "nothing: cuda::thread_scope_device does",
                           thread, at)};
  if (operation.fence.line)
    return {1, fmt::format("{} does the atomic operation at {}: its own __threadfence() must follow the "
                           "__syncthreads(), and the one at {} does not",
                           thread, at, place(operation.fence))};
  if (is_in(operation.fenced))
    return {1, fmt::format("{} does the atomic operation at {}: it needs a __threadfence() of its own, after "
                           "the __syncthreads()",
                           thread, at)};
  return {1, fmt::format("{} does the atomic operation at {}, which releases nothing: it needs a "
                         "__threadfence() before it, after the __syncthreads() if there is one, or "
                         "memory_order_release",
                         thread, at)};
}

/// The side that comes second: what makes `operation` acquire, then the access.
GridOrder::Explanation GridOrder::explain_second(const RaceChecker& races, const Write& second,
                                                 const Operation& operation) const {
  const Who &looks = operation.who, &comes = second.who;
  const std::string thread = fmt::format("thread {}", looks.rank), at = place(operation.atomic.where);
  if (!races.knows(comes.thread, looks.thread, operation.epoch))
    return {
        0, fmt::format("thread {} comes before it has met {}, which does the atomic operation at {}: a "
                       "__syncthreads() belongs between the two, or in a role a named barrier of its threads",
                       comes.rank, thread, at)};
  if (operation.acquires) return {2, ""};
  if (!operation.atomic.is_of_device)
    return {1, fmt::format("the atomic operation of {} at {} has the scope of its block, and learns nothing "
                           "of others: with cuda::thread_scope_device it does",
                           thread, at)};
  const Fence* late = nullptr;
  for (const Fence& fence : fences_) {
    if (fence.thread != looks.thread || fence.epoch < operation.epoch) continue;
    if (races.knows(comes.thread, fence.thread, fence.epoch)) return {2, ""};
    late = &fence;
  }
  if (late)
    return {1, fmt::format("{} does the atomic operation at {}: its own __threadfence() must come before the "
                           "__syncthreads(), and the one at {} does not",
                           thread, at, place(late->where))};
  const bool has_fenced_itself = std::any_of(fences_.begin(), fences_.end(), [&](const Fence& fence) {
    return fence.thread == comes.thread && covers(fence.known->at(cluster_), looks.thread, operation.epoch);
  });
  if (has_fenced_itself)
    return {1,
            fmt::format("{} does the atomic operation at {}: it needs a __threadfence() of its own, before "
                        "the __syncthreads()",
                        thread, at)};
  return {1, fmt::format("{} does the atomic operation at {}, which acquires nothing: it needs a "
                         "__threadfence() after it, or memory_order_acquire",
                         thread, at)};
}

/// Of all operations that could have handed over, those that come closest.
std::string GridOrder::explain(const RaceChecker& races, const Write& first, const Write& second) const {
  Explanation release, acquire;
  bool is_found = false;
  for (auto looks = operations_.begin(); looks != operations_.end(); ++looks) {
    if (looks->cluster != cluster_ || !looks->looks) continue;
    const Explanation there = explain_second(races, second, *looks);
    for (auto changes = operations_.begin(); changes != looks; ++changes) {
      if (changes->cluster != first.cluster || !changes->changes ||
          changes->atomic.object != looks->atomic.object)
        continue;
      Explanation here = explain_first(first, *changes);
      if (is_found && here.steps + there.steps < release.steps + acquire.steps) continue;
      release = std::move(here);
      acquire = there;
      is_found = true;
    }
  }
  if (!is_found) return "";
  const std::string storing = name(first.who.block), coming = name(second.who.block);
  std::string text = acquire.text.empty()   ? "the first does not release what it has stored"
                     : release.text.empty() ? "the second does not acquire what the first has released"
                                            : "neither does the first release, nor the second acquire";
  if (!release.text.empty()) text += fmt::format("\n  first, {}: {}", storing, release.text);
  if (!acquire.text.empty()) text += fmt::format("\n  second, {}: {}", coming, acquire.text);
  return text;
}

std::string GridOrder::describe(const Write& access) {
  const auto* const address = access.place.return_address;
  return warp_and_lane(access.who) + " at " +
         (address ? describe_call_site(reinterpret_cast<uintptr_t>(address)) : place(access.place.call));
}

}  // namespace cpu_device
