/// @file
/// cp.async, bulk copies, and TMA.
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

using cpu_device::BulkReduction;
using cpu_device::ElementType;
using Kind = Type::Kind;

uint32_t number(const Frame& frame, const Instruction& it, size_t argument) {
  return static_cast<uint32_t>(frame.read(it.arguments[argument].ref));
}
void* global(const Frame& frame, const Instruction& it, size_t argument) {
  return reinterpret_cast<void*>(frame.address(it.arguments[argument]));
}
cpu_device::SharedPlace shared(const Frame& frame, const Instruction& it, size_t argument,
                               bool of_cluster = false) {
  return cpu_device::find_in_shared_window(frame.address(it.arguments[argument]), 1, of_cluster, it.label,
                                           frame.where);
}
bool is_address(const Instruction& it, size_t argument) {
  return it.arguments.size() > argument && it.arguments[argument].kind == Argument::Kind::address;
}

// --- cp.async

void copy(Frame& frame, const Instruction& it) {
  const uint32_t bytes = number(frame, it, 2);
  uint32_t source = bytes;
  if (it.mode) source = it.flag ? (frame.test(it.arguments[3].ref) ? 0 : bytes) : number(frame, it, 3);
  cpu_device::copy_async(shared(frame, it, 0).pointer, global(frame, it, 1), bytes, source, frame.where);
}

/// `ignore_src` is a predicate; whether the fourth argument is one, its register says.
bool is_predicate(const Ref& ref) { return ref.kind == Ref::Kind::local && ref.bytes == 1; }

bool bind_copy(Instruction& it, Words& words) {
  if (words.take("commit_group")) {
    it.execute = [](Frame& frame, const Instruction&) { cpu_device::copy_commit(frame.where); };
    return it.arguments.empty();
  }
  if (words.take("wait_group")) {
    it.execute = [](Frame& frame, const Instruction& it) {
      cpu_device::copy_wait(number(frame, it, 0), "cp.async.wait_group", frame.where);
    };
    return it.arguments.size() == 1;
  }
  if (words.take("wait_all")) {
    it.execute = [](Frame& frame, const Instruction&) {
      cpu_device::copy_commit(frame.where);
      cpu_device::copy_wait(0, "cp.async.wait_all", frame.where);
    };
    return it.arguments.empty();
  }
  if (words.take("mbarrier")) {
    it.flag = words.take("noinc");
    words.take_one_of({"shared::cta", "shared"});
    it.execute = [](Frame& frame, const Instruction& it) {
      const auto place = cpu_device::find_in_shared_window(frame.address(it.arguments[0]), sizeof(uint64_t),
                                                           false, it.label, frame.where);
      cpu_device::copy_arrive(reinterpret_cast<uint64_t*>(place.pointer),
                              it.flag ? cpu_device::CopyArrival::expected : cpu_device::CopyArrival::extra,
                              frame.where);
    };
    return words.take("arrive") && words.take_type().bits == 64 && it.arguments.size() == 1;
  }
  it.label = "cp.async";
  if (words.take_one_of({"ca", "cg"}) < 0 || words.take_one_of({"shared::cta", "shared"}) < 0 ||
      !words.take("global"))
    return false;
  if (words.take("L2::cache_hint")) it.arguments.pop_back();
  words.take_prefix("L2::");
  if (!is_address(it, 0) || !is_address(it, 1) || it.arguments.size() < 3 || it.arguments.size() > 4)
    return false;
  it.mode = it.arguments.size() == 4;
  it.flag = it.mode && is_predicate(it.arguments[3].ref);
  it.execute = &copy;
  return true;
}

// --- bulk copies

/// Where a copy to shared memory arrives: `mode` says which argument is a mask of blocks, 0 that there is
/// none.
cpu_device::BulkArrival arrival(const Frame& frame, const Instruction& it, size_t barrier,
                                const cpu_device::SharedPlace& to) {
  const auto place = cpu_device::find_in_shared_window(frame.address(it.arguments[barrier]), sizeof(uint64_t),
                                                       /*of_cluster=*/true, it.label, frame.where);
  uint32_t blocks = 0;
  if (it.mode) {
    blocks = number(frame, it, static_cast<size_t>(it.mode)) & 0xffff;
    if (!blocks) cpu_device::report_misuse("a multicast to no block: the mask is 0", frame.where);
  } else if (!to.is_own) {
    blocks = 1u << to.rank;
  }
  return {reinterpret_cast<uint64_t*>(place.own), blocks};
}

void coordinates(const Frame& frame, const Argument& address, int* to) {
  for (size_t d = 0; d < address.parts.size(); ++d) to[d] = frame.get<int32_t>(address.parts[d]);
}

void load_tensor(Frame& frame, const Instruction& it) {
  int at[5];
  const Argument& map = it.arguments[1];
  coordinates(frame, map, at);
  const auto to = shared(frame, it, 0, /*of_cluster=*/true);
  cpu_device::tma_load(to.own,
                       reinterpret_cast<const void*>(frame.read(map.ref) + static_cast<uint64_t>(map.offset)),
                       at, static_cast<unsigned>(map.parts.size()), arrival(frame, it, 2, to), frame.where);
}

void store_tensor(Frame& frame, const Instruction& it) {
  int at[5];
  const Argument& map = it.arguments[0];
  coordinates(frame, map, at);
  cpu_device::tma_store(
      reinterpret_cast<const void*>(frame.read(map.ref) + static_cast<uint64_t>(map.offset)),
      shared(frame, it, 1).pointer, at, static_cast<unsigned>(map.parts.size()),
      static_cast<BulkReduction>(it.variant), frame.where);
}

void load_bulk(Frame& frame, const Instruction& it) {
  const auto to = shared(frame, it, 0, /*of_cluster=*/true);
  cpu_device::bulk_load(to.own, global(frame, it, 1), number(frame, it, 2), arrival(frame, it, 3, to),
                        frame.where);
}

void store_bulk(Frame& frame, const Instruction& it) {
  cpu_device::bulk_store(global(frame, it, 0), shared(frame, it, 1).pointer, number(frame, it, 2),
                         static_cast<BulkReduction>(it.variant), static_cast<ElementType>(it.count),
                         frame.where);
}

void send_bulk(Frame& frame, const Instruction& it) {
  const auto to = shared(frame, it, 0, /*of_cluster=*/true);
  const auto barrier = cpu_device::find_in_shared_window(frame.address(it.arguments[3]), sizeof(uint64_t),
                                                         /*of_cluster=*/true, it.label, frame.where);
  cpu_device::bulk_send(to.own, to.rank, shared(frame, it, 1).pointer, number(frame, it, 2),
                        reinterpret_cast<uint64_t*>(barrier.own), frame.where);
}

bool take_reduction(Instruction& it, Words& words) {
  const int reduction = words.take_one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  it.variant = reduction + 1;
  return reduction >= 0;
}

bool take_element(Instruction& it, Words& words) {
  words.take("noftz");
  const Type type = words.take_type();
  if (type.elements != 1 || type.bits < 16) return false;
  ElementType element = ElementType::u32;
  if (type.kind == Kind::bfloat) {
    element = ElementType::bf16;
  } else if (type.kind == Kind::floating) {
    element = type.bits == 16 ? ElementType::f16 : type.bits == 32 ? ElementType::f32 : ElementType::f64;
  } else if (type.kind == Kind::signed_int) {
    element = type.bits == 32 ? ElementType::s32 : ElementType::s64;
  } else if (type.bits == 64) {
    element = ElementType::u64;
  }
  it.count = static_cast<uint32_t>(element);
  return true;
}

/// Takes what says where from and where to: 1 from global to shared memory, 2 back, 3 between blocks.
int take_direction(Words& words) {
  const bool from_global =
      words.has_before("shared::cluster", "global") || words.has_before("shared::cta", "global");
  const bool to_global = words.has_before("global", "shared::cta");
  const bool to_peer = words.has_before("shared::cluster", "shared::cta");
  words.take("global");
  words.take("shared::cluster");
  words.take("shared::cta");
  return from_global ? 1 : to_global ? 2 : to_peer ? 3 : 0;
}

bool bind_tensor(Instruction& it, Words& words, bool reduces) {
  const int dimensions = words.take_one_of({"1d", "2d", "3d", "4d", "5d"}) + 1;
  const int direction = take_direction(words);
  words.take("tile");
  if (words.take("L2::cache_hint")) it.arguments.pop_back();
  if (dimensions == 0) return false;
  if (direction == 1 && !reduces) {
    it.label = "TMA load";
    if (!words.take("mbarrier::complete_tx::bytes")) return false;
    words.take("cta_group::1");
    if (words.take("multicast::cluster")) it.mode = 3;
    it.execute = &load_tensor;
    return is_address(it, 0) && is_address(it, 1) && is_address(it, 2) &&
           it.arguments.size() == (it.mode ? 4u : 3u) &&
           it.arguments[1].parts.size() == static_cast<size_t>(dimensions);
  }
  it.label = "TMA store";
  if (direction != 2 || !words.take("bulk_group") || (reduces && !take_reduction(it, words))) return false;
  it.execute = &store_tensor;
  return is_address(it, 0) && is_address(it, 1) && it.arguments.size() == 2 &&
         it.arguments[0].parts.size() == static_cast<size_t>(dimensions);
}

bool bind_bulk(Instruction& it, Words& words, bool reduces) {
  if (words.take("commit_group")) {
    it.execute = [](Frame& frame, const Instruction&) { cpu_device::tma_store_commit(frame.where); };
    return it.arguments.empty();
  }
  if (words.take("wait_group")) {
    it.flag = words.take("read");
    it.execute = [](Frame& frame, const Instruction& it) {
      cpu_device::tma_store_wait(number(frame, it, 0), it.flag, frame.where);
    };
    return it.arguments.size() == 1;
  }
  if (words.take("prefetch")) {
    while (!words.take_prefix("").empty()) {
    }
    it.execute = [](Frame&, const Instruction&) {};
    return true;
  }
  if (words.take("tensor")) return bind_tensor(it, words, reduces);
  it.label = "bulk copy";
  const int direction = take_direction(words);
  if (words.take("L2::cache_hint")) it.arguments.pop_back();
  words.take_prefix("L2::");
  if (!is_address(it, 0) || !is_address(it, 1)) return false;
  if (direction == 2) {
    if (!words.take("bulk_group") || (reduces && !(take_reduction(it, words) && take_element(it, words))))
      return false;
    it.execute = &store_bulk;
    return it.arguments.size() == 3;
  }
  if (reduces || !words.take("mbarrier::complete_tx::bytes") || !is_address(it, 3)) return false;
  if (words.take("multicast::cluster")) it.mode = 4;
  it.execute = direction == 1 ? &load_bulk : direction == 3 ? &send_bulk : nullptr;
  return it.arguments.size() == (it.mode ? 5u : 4u);
}

bool bind_cp(Instruction& it, Words& words) {
  const bool reduces = words.take("reduce");
  if (!words.take("async")) return false;
  if (words.take("bulk")) return bind_bulk(it, words, reduces);
  return !reduces && bind_copy(it, words);
}

constexpr TableEntry kTable[] = {{"cp", &bind_cp}};

}  // namespace

Table asynchronous_table() { return {kTable, std::size(kTable)}; }

/// 16 bytes, as .v4.b32 or .v2.b64.
bool bind_store_async(Instruction& it, Words& words) {
  words.take("weak");
  words.take("shared::cluster");
  const int vector = words.take_one_of({"v2", "v4"});
  it.type = words.take_type();
  it.count = 2u << vector;
  it.execute = [](Frame& frame, const Instruction& it) {
    uint64_t value[2];
    auto* to = reinterpret_cast<std::byte*>(value);
    for (const Ref& part : it.arguments[1].parts) {
      const uint64_t one = frame.read(part);
      std::memcpy(to, &one, it.type.bytes());
      to += it.type.bytes();
    }
    const auto place = shared(frame, it, 0, /*of_cluster=*/true);
    const auto barrier = shared(frame, it, 2, /*of_cluster=*/true);
    cpu_device::store_async(place.own, place.rank, value, reinterpret_cast<const uint64_t*>(barrier.own),
                            frame.where);
  };
  return vector >= 0 && words.take("mbarrier::complete_tx::bytes") && it.arguments.size() == 3 &&
         it.arguments[1].parts.size() == it.count && it.type.bytes() * it.count == 16;
}

}  // namespace ladder::inline_ptx
