/// @file
/// Barriers, mbarriers, fences, what warps do together, and branches.
#include <bit>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

using cpu_device::ArrivalOrder;
using Kind = Type::Kind;

uint32_t number(const Frame& frame, const Instruction& instruction, size_t argument) {
  return static_cast<uint32_t>(frame.read(instruction.arguments[argument].ref));
}
bool has_arguments(const Instruction& instruction, size_t least, size_t most) {
  return instruction.arguments.size() >= least && instruction.arguments.size() <= most;
}

// --- mbarriers

cpu_device::SharedPlace barrier_at(const Frame& frame, const Instruction& it, size_t argument) {
  return cpu_device::find_in_shared_window(frame.address(it.arguments[argument]), sizeof(uint64_t),
                                           it.of_cluster, it.label, frame.where);
}
uint64_t* pointer(const cpu_device::SharedPlace& place) { return reinterpret_cast<uint64_t*>(place.own); }

/// `count`: index of the argument that holds it; 0: one arrival. `mode`: of the bytes to expect, likewise.
void arrive(Frame& frame, const Instruction& it) {
  const size_t address = it.variant;
  const auto place = barrier_at(frame, it, address);
  const uint32_t arrivals = it.count ? number(frame, it, it.count) : 1;
  const uint32_t bytes = it.mode ? number(frame, it, static_cast<size_t>(it.mode)) : 0;
  if (!place.is_own) {
    if (bytes) cpu_device::mbarrier_expect_bytes_remote(pointer(place), place.rank, bytes, frame.where);
    for (uint32_t i = 0; i < arrivals; ++i)
      cpu_device::mbarrier_arrive_remote(pointer(place), place.rank,
                                         it.flag ? ArrivalOrder::relaxed : ArrivalOrder::release, it.label,
                                         frame.where);
    return;
  }
  const uint64_t phase = cpu_device::mbarrier_arrive(pointer(place), arrivals, bytes, it.label, frame.where);
  if (address) frame.write(it.arguments[0].ref, phase);
}

void drop(Frame& frame, const Instruction& it) {
  const auto place = barrier_at(frame, it, it.variant);
  const uint32_t arrivals = it.count ? number(frame, it, it.count) : 1;
  const uint32_t bytes = it.mode ? number(frame, it, static_cast<size_t>(it.mode)) : 0;
  if (bytes) cpu_device::mbarrier_expect_bytes(pointer(place), bytes, frame.where);
  for (uint32_t i = 0; i < arrivals; ++i) cpu_device::mbarrier_arrive_and_drop(pointer(place), frame.where);
}

/// A look that a loop repeats is a wait: so that a deadlock is one.
void wait(Frame& frame, const Instruction& it) {
  uint64_t* const barrier = pointer(barrier_at(frame, it, 1));
  const uint32_t parity = number(frame, it, 2) & 1;
  bool ended = true;
  if (it.is_in_loop) {
    it.flag ? cpu_device::mbarrier_wait_cluster(barrier, parity, it.label, frame.where)
            : cpu_device::mbarrier_wait(barrier, parity, it.label, frame.where);
  } else {
    ended = it.flag ? cpu_device::mbarrier_test_cluster(barrier, parity, it.label, frame.where)
                    : cpu_device::mbarrier_test(barrier, parity, it.label, frame.where);
  }
  frame.write(it.arguments[0].ref, ended);
}

bool bind_mbarrier(Instruction& it, Words& words) {
  constexpr std::string_view kKinds[] = {"init",   "inval",       "expect_tx", "complete_tx",
                                         "arrive", "arrive_drop", "test_wait", "try_wait"};
  static constexpr const char* kLabels[] = {
      "mbarrier.init",   "mbarrier.inval",       "mbarrier.expect_tx", "mbarrier.complete_tx",
      "mbarrier.arrive", "mbarrier.arrive_drop", "mbarrier.test_wait", "mbarrier.try_wait"};
  size_t kind = 0;
  // "arrive.expect_tx" is an arrival.
  for (const size_t k :
       {size_t{4}, size_t{5}, size_t{0}, size_t{1}, size_t{2}, size_t{3}, size_t{6}, size_t{7}}) {
    if (!words.take(kKinds[k])) continue;
    kind = k + 1;
    break;
  }
  if (!kind--) return false;
  it.label = kLabels[kind];
  const bool expects = words.take("expect_tx");
  words.take("noComplete");
  words.take("parity");
  it.flag = words.take("relaxed");
  words.take_one_of({"release", "acquire"});
  const int scope = words.take_one_of({"cta", "cluster"});
  it.of_cluster = words.take_one_of({"shared::cluster", "shared::cta", "shared"}) == 0;
  if (words.take_type().bits != 64) return false;
  const size_t given = it.arguments.size();
  const auto address_is = [&](size_t i) {
    return given > i && it.arguments[i].kind == Argument::Kind::address;
  };
  switch (kind) {
    case 0:
      it.execute = [](Frame& frame, const Instruction& it) {
        cpu_device::mbarrier_init(pointer(barrier_at(frame, it, 0)), number(frame, it, 1), frame.where);
      };
      return given == 2 && address_is(0);
    case 1:
      it.execute = [](Frame& frame, const Instruction& it) {
        cpu_device::mbarrier_invalidate(pointer(barrier_at(frame, it, 0)), frame.where);
      };
      return given == 1 && address_is(0);
    case 2:
      it.execute = [](Frame& frame, const Instruction& it) {
        const auto place = barrier_at(frame, it, 0);
        place.is_own ? cpu_device::mbarrier_expect_bytes(pointer(place), number(frame, it, 1), frame.where)
                     : cpu_device::mbarrier_expect_bytes_remote(pointer(place), place.rank,
                                                                number(frame, it, 1), frame.where);
      };
      return given == 2 && address_is(0);
    case 3:
      it.execute = [](Frame& frame, const Instruction& it) {
        cpu_device::mbarrier_complete_bytes(pointer(barrier_at(frame, it, 0)), number(frame, it, 1),
                                            frame.where);
      };
      return given == 2 && address_is(0);
    case 4:
    case 5: {
      const size_t address = address_is(0) ? 0 : 1;
      it.variant = static_cast<int>(address);
      const bool has_more = given == address + 2;
      if (expects) {
        it.mode = static_cast<int>(address) + 1;
      } else if (has_more) {
        it.count = static_cast<uint32_t>(address) + 1;
      }
      it.execute = kind == 4 ? &arrive : &drop;
      return address_is(address) && (expects ? has_more : given <= address + 2);
    }
    default:
      it.flag = scope == 1;
      it.execute = &wait;
      return given >= 3 && given <= 4 && address_is(1);
  }
}

// --- barriers of blocks

unsigned threads_of_block() { return cpu_device::current_thread_ids->block->threads; }

/// Of a barrier of all threads of the block: 0, as the engine calls that.
unsigned threads_at(const Frame& frame, const Instruction& it, size_t argument, unsigned id) {
  if (it.arguments.size() > argument) return number(frame, it, argument);
  return id == 0 || threads_of_block() % 32 ? 0 : threads_of_block();
}

bool bind_bar(Instruction& it, Words& words) {
  if (words.take("cluster")) {
    words.take("aligned");
    const int kind = words.take_one_of({"arrive", "wait"});
    it.flag = words.take("relaxed");
    words.take_one_of({"release", "acquire"});
    if (kind < 0 || !it.arguments.empty()) return false;
    it.execute = kind
                     ? [](Frame& frame, const Instruction&) { cpu_device::cluster_barrier_wait(frame.where); }
                     : [](Frame& frame, const Instruction& it) {
                         cpu_device::cluster_barrier_arrive(
                             it.flag ? ArrivalOrder::relaxed : ArrivalOrder::release, frame.where);
                       };
    return true;
  }
  if (words.take("warp")) {
    it.execute = [](Frame& frame, const Instruction& it) {
      cpu_device::warp_barrier(number(frame, it, 0), frame.where);
    };
    return words.take("sync") && it.arguments.size() == 1;
  }
  words.take("cta");
  words.take("aligned");
  const int kind = words.take_one_of({"sync", "arrive", "red"});
  if (kind == 0) {
    it.execute = [](Frame& frame, const Instruction& it) {
      const unsigned id = number(frame, it, 0);
      cpu_device::named_barrier_sync(id, threads_at(frame, it, 1, id), frame.where);
    };
    return has_arguments(it, 1, 2);
  }
  if (kind == 1) {
    it.execute = [](Frame& frame, const Instruction& it) {
      cpu_device::named_barrier_arrive(number(frame, it, 0), number(frame, it, 1), frame.where);
    };
    return it.arguments.size() == 2;
  }
  if (kind != 2 || !has_arguments(it, 3, 4)) return false;
  it.mode = words.take_one_of({"or", "and", "popc"});
  words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const unsigned id = number(frame, it, 1);
    const unsigned threads = it.arguments.size() == 4 ? number(frame, it, 2) : threads_at(frame, it, 4, id);
    const bool yes = frame.test(it.arguments.back().ref);
    if (it.mode == 2) {
      frame.write(it.arguments[0].ref, cpu_device::block_vote(yes, frame.where));
    } else if (it.mode == 0) {
      frame.write(it.arguments[0].ref, cpu_device::named_barrier_or(id, threads, yes, frame.where));
    } else {
      frame.write(it.arguments[0].ref, !cpu_device::named_barrier_or(id, threads, !yes, frame.where));
    }
  };
  return it.mode >= 0;
}

// --- fences

bool bind_fence(Instruction& it, Words& words) {
  it.execute = [](Frame&, const Instruction&) {};
  if (words.take("proxy")) {
    if (words.take("async")) {
      if (words.take("global")) return true;
      words.take_one_of({"shared::cta", "shared::cluster"});
    } else if (words.take("async::generic")) {
      words.take_one_of({"acquire", "release"});
      words.take_prefix("sync_restrict");
      words.take_one_of({"cluster", "cta"});
    } else {
      words.take("alias");
      words.take_prefix("tensormap");
      words.take_one_of({"acquire", "release"});
      words.take_one_of({"cta", "cluster", "gpu", "sys"});
      return true;
    }
    it.execute = [](Frame& frame, const Instruction&) { cpu_device::fence_proxy_async(frame.where); };
    return true;
  }
  if (words.take("mbarrier_init")) {
    it.execute = [](Frame& frame, const Instruction&) { cpu_device::fence_mbarrier_init(frame.where); };
    return words.take("release") && words.take("cluster");
  }
  const int order = words.take_one_of({"sc", "acq_rel", "acquire", "release"});
  words.take_prefix("sync_restrict");
  const int scope = words.take_one_of({"cta", "cluster", "gpu", "sys"});
  it.flag = order <= 0;
  if (scope >= 2)
    it.execute = [](Frame& frame, const Instruction& it) { cpu_device::thread_fence(frame.where, it.flag); };
  else
    it.execute = [](Frame& frame, const Instruction&) { cpu_device::thread_fence_block(frame.where); };
  return scope >= 0;
}

bool bind_membar(Instruction& it, Words& words) {
  const int scope = words.take_one_of({"cta", "gl", "sys"});
  it.execute = scope > 0
                   ? [](Frame& frame, const Instruction&) { cpu_device::thread_fence(frame.where); }
                   : [](Frame& frame, const Instruction&) { cpu_device::thread_fence_block(frame.where); };
  return scope >= 0;
}

// --- warps

/// The lane whose value a shuffle gives, as bits 0-4 and 8-12 of c say it; is it in the segment?
bool is_in_segment(int mode, unsigned lane, unsigned b, unsigned c) {
  const unsigned segment = c >> 8 & 31, clamp = c & 31;
  const unsigned most = (lane & segment) | (clamp & ~segment), least = lane & segment;
  switch (mode) {
    case 0:
      return static_cast<int>(lane - b) >= static_cast<int>(most);
    case 1:
      return lane + b <= most;
    case 2:
      return (lane ^ b) <= most;
    default:
      return (least | (b & ~segment & 31)) <= most;
  }
}

bool bind_shfl(Instruction& it, Words& words) {
  if (!words.take("sync")) return false;
  it.mode = words.take_one_of({"up", "down", "bfly", "idx"});
  if (it.mode < 0 || words.take_type().bytes() != 4 || it.arguments.size() != 5) return false;
  it.execute = [](Frame& frame, const Instruction& it) {
    using cpu_device::Shuffle;
    constexpr Shuffle kKinds[] = {Shuffle::up, Shuffle::down, Shuffle::exclusive_or, Shuffle::index};
    const unsigned b = number(frame, it, 2), c = number(frame, it, 3);
    const auto width = static_cast<int>(32 - (c >> 8 & 31));
    const auto value =
        static_cast<uint32_t>(cpu_device::shuffle(kKinds[it.mode], number(frame, it, 4), number(frame, it, 1),
                                                  static_cast<int>(b & 31), width, frame.where));
    frame.write(it.arguments[0].ref, value);
    frame.write(it.arguments[0].second,
                is_in_segment(it.mode, cpu_device::current_thread_ids->rank % 32, b & 31, c));
  };
  return true;
}

bool bind_vote(Instruction& it, Words& words) {
  if (!words.take("sync")) return false;
  it.mode = words.take_one_of({"ballot", "any", "all", "uni"});
  words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    const bool mine = frame.test(it.arguments[1].ref);
    const uint32_t mask = number(frame, it, 2);
    const uint32_t yes = cpu_device::ballot(mask, mine, frame.where);
    const uint32_t lanes = mask & cpu_device::live_lanes();
    const uint32_t results[] = {yes, yes != 0, yes == lanes, yes == lanes || yes == 0};
    frame.write(it.arguments[0].ref, results[it.mode]);
  };
  return it.mode >= 0 && it.arguments.size() == 3;
}

bool bind_match(Instruction& it, Words& words) {
  it.mode = words.take_one_of({"any", "all"});
  it.type = words.take_type();
  if (it.mode < 0 || !words.take("sync") || it.arguments.size() != 3) return false;
  it.execute = [](Frame& frame, const Instruction& it) {
    uint64_t value = frame.read(it.arguments[1].ref);
    if (it.type.bits == 32) value = static_cast<uint32_t>(value);
    const uint32_t mask = number(frame, it, 2);
    uint32_t equal = cpu_device::match_any(mask, value, frame.where);
    if (it.mode == 1) {
      const uint32_t lanes = mask & cpu_device::live_lanes();
      const bool all = cpu_device::ballot(mask, equal == lanes, frame.where) == lanes;
      frame.write(it.arguments[0].second, all);
      equal = all ? lanes : 0;
    }
    frame.write(it.arguments[0].ref, equal);
  };
  return true;
}

bool bind_redux(Instruction& it, Words& words) {
  if (!words.take("sync") || it.arguments.size() != 3) return false;
  const int kind = words.take_one_of({"add", "min", "max", "and", "or", "xor"});
  const Type type = words.take_type();
  using cpu_device::Reduction;
  constexpr Reduction kKinds[] = {Reduction::add,     Reduction::min,    Reduction::max,
                                  Reduction::bit_and, Reduction::bit_or, Reduction::bit_xor};
  if (kind < 0 || type.bits != 32 || !type.is_integer()) return false;
  Reduction reduction = kKinds[kind];
  if (type.kind == Kind::signed_int && kind == 1) reduction = Reduction::min_signed;
  if (type.kind == Kind::signed_int && kind == 2) reduction = Reduction::max_signed;
  it.mode = static_cast<int>(reduction);
  it.execute = [](Frame& frame, const Instruction& it) {
    frame.write(it.arguments[0].ref, cpu_device::reduce(static_cast<Reduction>(it.mode), number(frame, it, 2),
                                                        number(frame, it, 1), frame.where));
  };
  return true;
}

bool bind_activemask(Instruction& it, Words& words) {
  words.take_type();
  it.execute = [](Frame& frame, const Instruction& it) {
    frame.write(it.arguments[0].ref, cpu_device::active_mask(frame.where));
  };
  return it.arguments.size() == 1;
}

bool bind_elect(Instruction& it, Words& words) {
  it.execute = [](Frame& frame, const Instruction& it) {
    const uint32_t lanes = number(frame, it, 1) & cpu_device::live_lanes();
    const unsigned leader = cpu_device::elected_lane(lanes);
    frame.write(it.arguments[0].ref, leader);
    frame.write(it.arguments[0].second, cpu_device::current_thread_ids->rank % 32 == leader);
  };
  return words.take("sync") && it.arguments.size() == 2;
}

// --- registers, other kernels, branches

bool bind_setmaxnreg(Instruction& it, Words& words) {
  it.mode = words.take_one_of({"dec", "inc"});
  it.execute = [](Frame& frame, const Instruction& it) {
    cpu_device::set_max_registers(number(frame, it, 0), it.mode == 1, frame.where);
  };
  return it.mode >= 0 && words.take("sync") && words.take("aligned") && words.take_type().bits == 32 &&
         it.arguments.size() == 1;
}

bool bind_griddepcontrol(Instruction& it, Words& words) {
  const int kind = words.take_one_of({"launch_dependents", "wait"});
  it.execute = kind ? [](Frame& frame, const Instruction&) { cpu_device::griddepcontrol_wait(frame.where); }
                    : [](Frame&, const Instruction&) {};
  return kind >= 0;
}

bool bind_nanosleep(Instruction& it, Words& words) {
  words.take_type();
  it.execute = [](Frame& frame, const Instruction&) { cpu_device::poll("nanosleep", frame.where); };
  return it.arguments.size() == 1;
}

bool bind_bra(Instruction& it, Words& words) {
  words.take("uni");
  it.execute = [](Frame& frame, const Instruction& it) {
    constexpr uint32_t kPatience = 1024;
    if (it.target < frame.next && ++frame.jumps % kPatience == 0)
      cpu_device::poll("a loop of inline PTX", frame.where);
    frame.next = it.target;
  };
  return it.arguments.size() == 1 && it.arguments[0].kind == Argument::Kind::label;
}

bool bind_trap(Instruction& it, Words&) {
  it.execute = [](Frame& frame, const Instruction&) { cpu_device::report_misuse("trap", frame.where); };
  return it.arguments.empty();
}
bool bind_brkpt(Instruction& it, Words&) {
  it.execute = [](Frame& frame, const Instruction&) { cpu_device::report_misuse("brkpt", frame.where); };
  return it.arguments.empty();
}
bool bind_exit(Instruction& it, Words&) {
  it.execute = [](Frame& frame, const Instruction&) { cpu_device::exit_thread(frame.where); };
  return it.arguments.empty();
}
bool bind_ret(Instruction& it, Words& words) {
  words.take("uni");
  return bind_exit(it, words);
}

constexpr TableEntry kTable[] = {
    {"mbarrier", &bind_mbarrier},
    {"bar", &bind_bar},
    {"barrier", &bind_bar},
    {"fence", &bind_fence},
    {"membar", &bind_membar},
    {"shfl", &bind_shfl},
    {"vote", &bind_vote},
    {"match", &bind_match},
    {"redux", &bind_redux},
    {"activemask", &bind_activemask},
    {"elect", &bind_elect},
    {"setmaxnreg", &bind_setmaxnreg},
    {"griddepcontrol", &bind_griddepcontrol},
    {"nanosleep", &bind_nanosleep},
    {"bra", &bind_bra},
    {"trap", &bind_trap},
    {"brkpt", &bind_brkpt},
    {"exit", &bind_exit},
    {"ret", &bind_ret},
};

}  // namespace

Table synchronisation_table() { return {kTable, std::size(kTable)}; }

}  // namespace ladder::inline_ptx
