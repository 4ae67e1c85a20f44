/// @file
/// Loads, stores, atomic operations, and addresses.
#include <algorithm>
#include <atomic>
#include <cmath>

#include "common/cpu_device/base/float16.hpp"
#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

using Kind = Type::Kind;

/// Takes the words for caches, which change nothing here. The operand of a hint is the last one.
void take_cache_words(Instruction& instruction, Words& words) {
  for (const std::string_view word : {"ca", "cg", "cs", "cv", "lu", "wb", "wt"}) words.take(word);
  for (const std::string_view prefix : {"L1::", "level::"}) words.take_prefix(prefix);
  if (words.take("L2::cache_hint") && !instruction.arguments.empty()) instruction.arguments.pop_back();
  words.take_prefix("L2::");
}

enum Order { weak, relaxed, acquire, release, acquire_release };

/// The words for the order of an access, as `mode`; `flag`: of a scope that other blocks belong to.
void take_order(Instruction& instruction, Words& words) {
  const int order =
      words.take_one_of({"weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"});
  instruction.mode = order == 5 || order == 6 ? relaxed : std::max(order, 0);
  if (order == 6) words.take("relaxed");
  const int scope = words.take_one_of({"cta", "cluster", "gpu", "sys"});
  instruction.flag = scope != 0 && scope != 1;
}

// --- ld and st

constexpr unsigned kMaxBytes = 32;

/// An atomic access of one value: other blocks may look at it, and a loop of loads lets them run.
void around_atomic_load(const Frame& frame, const Instruction& instruction, const void* address) {
  cpu_device::note_atomic(address, instruction.type.bytes() * instruction.count, /*changes=*/false,
                          instruction.label, frame.where);
  cpu_device::atomic_ended(address, instruction.mode == acquire, frame.where, instruction.flag);
  cpu_device::atomic_looked(address, /*changed=*/false, instruction.label, frame.where);
}

void load(Frame& frame, const Instruction& instruction) {
  const unsigned one = instruction.type.bytes(), bytes = one * instruction.count;
  const void* const from = find(frame, instruction, 1, bytes);
  const bool is_atomic = instruction.mode != weak;
  if (is_atomic) around_atomic_load(frame, instruction, from);
  if (!is_atomic || cpu_device::is_shared(from))
    cpu_device::note_access(from, bytes, /*write=*/false, instruction.label, frame.where, is_atomic);
  if (instruction.variant) cpu_device::note_read_only_load(from, bytes, frame.where);
  std::byte data[kMaxBytes];
  std::memcpy(data, from, bytes);
  const Argument& to = instruction.arguments[0];
  for (unsigned i = 0; i < instruction.count; ++i) {
    const Ref& ref = instruction.count == 1 && to.parts.empty() ? to.ref : to.parts[i];
    uint64_t value[2] = {};
    std::memcpy(value, data + i * one, one);
    if (one > sizeof(uint64_t)) {
      frame.write_wide(ref, value);
      continue;
    }
    if (instruction.type.kind == Kind::signed_int && one < 8) {
      const unsigned shift = 64 - 8 * one;
      value[0] = static_cast<uint64_t>(static_cast<int64_t>(value[0] << shift) >> shift);
    }
    frame.write(ref, value[0]);
  }
}

void store(Frame& frame, const Instruction& instruction) {
  const unsigned one = instruction.type.bytes(), bytes = one * instruction.count;
  void* const to = find(frame, instruction, 0, bytes);
  std::byte data[kMaxBytes];
  const Argument& from = instruction.arguments[1];
  for (unsigned i = 0; i < instruction.count; ++i) {
    const Ref& ref = instruction.count == 1 && from.parts.empty() ? from.ref : from.parts[i];
    uint64_t value[2];
    frame.read_wide(ref, value);
    std::memcpy(data + i * one, value, one);
  }
  if (instruction.mode == weak || cpu_device::is_shared(to))
    cpu_device::note_access(to, bytes, /*write=*/true, instruction.label, frame.where,
                            instruction.mode != weak);
  if (instruction.mode == weak) {
    std::memcpy(to, data, bytes);
    return;
  }
  cpu_device::atomic_begins(to, instruction.mode == release, frame.where, instruction.flag);
  const bool changes = std::memcmp(to, data, bytes) != 0;
  std::memcpy(to, data, bytes);
  cpu_device::note_atomic(to, bytes, /*changes=*/true, instruction.label, frame.where);
  cpu_device::atomic_ended(to, /*acquires=*/false, frame.where, instruction.flag);
  cpu_device::atomic_looked(to, changes, instruction.label, frame.where);
}

bool bind_access(Instruction& instruction, Words& words, bool is_load) {
  if (words.has("async") || words.has("bulk")) return false;
  take_order(instruction, words);
  take_space(instruction, words);
  if (is_load) instruction.variant = words.take("nc");
  take_cache_words(instruction, words);
  words.take("unified");
  const int vector = words.take_one_of({"v2", "v4", "v8"});
  instruction.count = vector < 0 ? 1 : 2u << vector;
  instruction.type = words.take_type();
  if (instruction.arguments.size() != 2 || instruction.type.kind == Kind::none) return false;
  const Argument& data = instruction.arguments[is_load ? 0 : 1];
  const size_t parts = data.kind == Argument::Kind::vector ? data.parts.size() : 1;
  if (parts != instruction.count || instruction.count * instruction.type.bytes() > kMaxBytes) return false;
  settle_immediates(instruction, instruction.type);
  instruction.execute = is_load ? &load : &store;
  return instruction.arguments[is_load ? 1 : 0].kind == Argument::Kind::address;
}
bool bind_load(Instruction& instruction, Words& words) { return bind_access(instruction, words, true); }
bool bind_store(Instruction& instruction, Words& words) {
  if (words.take("async")) return bind_store_async(instruction, words);
  return bind_access(instruction, words, false);
}

// --- atom and red

/// Adds two packed fp16 or bf16 numbers.
template <auto kToFloat, auto kFromFloat>
uint32_t add_pairs(uint32_t a, uint32_t b) {
  const auto low = kFromFloat(kToFloat(static_cast<uint16_t>(a)) + kToFloat(static_cast<uint16_t>(b)));
  const auto high =
      kFromFloat(kToFloat(static_cast<uint16_t>(a >> 16)) + kToFloat(static_cast<uint16_t>(b >> 16)));
  return low | uint32_t{high} << 16;
}

struct Add {
  template <class T>
  T operator()(T there, T value, T) const {
    return static_cast<T>(there + value);
  }
};
struct Minimum {
  template <class T>
  T operator()(T there, T value, T) const {
    return std::min(there, value);
  }
};
struct Maximum {
  template <class T>
  T operator()(T there, T value, T) const {
    return std::max(there, value);
  }
};
struct Exchange {
  template <class T>
  T operator()(T, T value, T) const {
    return value;
  }
};
struct Compare {
  template <class T>
  T operator()(T there, T expected, T desired) const {
    return there == expected ? desired : there;
  }
};
struct Increase {
  template <class T>
  T operator()(T there, T value, T) const {
    return there >= value ? 0 : there + 1;
  }
};
struct Decrease {
  template <class T>
  T operator()(T there, T value, T) const {
    return there == 0 || there > value ? value : there - 1;
  }
};
struct And {
  template <class T>
  T operator()(T there, T value, T) const {
    return there & value;
  }
};
struct Or {
  template <class T>
  T operator()(T there, T value, T) const {
    return there | value;
  }
};
struct Xor {
  template <class T>
  T operator()(T there, T value, T) const {
    return there ^ value;
  }
};
struct AddHalves {
  template <class T>
  T operator()(T a, T b, T) const {
    using namespace cpu_device;
    return add_pairs<&float16_to_float, &float_to_float16>(a, b);
  }
};
struct AddBfloats {
  template <class T>
  T operator()(T a, T b, T) const {
    using namespace cpu_device;
    return add_pairs<&bfloat16_to_float, &float_to_bfloat16>(a, b);
  }
};
struct AddHalf {
  template <class T>
  T operator()(T a, T b, T) const {
    using namespace cpu_device;
    return float_to_float16(float16_to_float(a) + float16_to_float(b));
  }
};
struct AddBfloat {
  template <class T>
  T operator()(T a, T b, T) const {
    using namespace cpu_device;
    return float_to_bfloat16(bfloat16_to_float(a) + bfloat16_to_float(b));
  }
};

/// `variant`: whether what was there is returned. `count` values that follow each other, each by itself.
template <class T, class Operation>
void change(Frame& frame, const Instruction& instruction) {
  const int first = instruction.variant ? 1 : 0;  // argument: the address
  auto* const to = static_cast<T*>(find(frame, instruction, first, sizeof(T) * instruction.count));
  const auto at = static_cast<size_t>(first);
  const Argument& values = instruction.arguments[at + 1];
  const T third =
      instruction.arguments.size() > at + 2 ? frame.get<T>(instruction.arguments[at + 2].ref) : T{};
  for (uint32_t i = 0; i < instruction.count; ++i) {
    const T value = frame.get<T>(values.parts.empty() ? values.ref : values.parts[i]);
    const std::atomic_ref<T> object(to[i]);
    const bool releases = instruction.mode == release || instruction.mode == acquire_release;
    const bool acquires = instruction.mode == acquire || instruction.mode == acquire_release;
    cpu_device::atomic_begins(to + i, releases, frame.where, instruction.flag);
    T before = object.load(), after = Operation{}(before, value, third);
    while (!object.compare_exchange_weak(before, after)) after = Operation{}(before, value, third);
    const bool changes = std::memcmp(&before, &after, sizeof after) != 0;
    cpu_device::note_atomic(to + i, sizeof(T), changes, instruction.label, frame.where);
    cpu_device::atomic_ended(to + i, acquires, frame.where, instruction.flag);
    cpu_device::atomic_looked(to + i, changes, instruction.label, frame.where);
    if (instruction.variant) {
      const Argument& result = instruction.arguments[0];
      frame.set<T>(result.parts.empty() ? result.ref : result.parts[i], before);
    }
  }
}

template <class Operation>
Function of_unsigned(Type type) {
  if (type.bytes() == 4) return &change<uint32_t, Operation>;
  return type.bytes() == 8 ? &change<uint64_t, Operation> : nullptr;
}

template <class Operation>
Function of_integer(Type type) {
  if (type.kind != Kind::signed_int) return of_unsigned<Operation>(type);
  return type.bytes() == 4 ? &change<int32_t, Operation> : &change<int64_t, Operation>;
}

Function adding(Type type) {
  if (type.kind == Kind::floating && type.bits == 32) return &change<float, Add>;
  if (type.kind == Kind::floating && type.bits == 64) return &change<double, Add>;
  if (type.kind == Kind::floating)
    return type.elements == 2 ? &change<uint32_t, AddHalves> : &change<uint16_t, AddHalf>;
  if (type.kind == Kind::bfloat)
    return type.elements == 2 ? &change<uint32_t, AddBfloats> : &change<uint16_t, AddBfloat>;
  return of_unsigned<Add>(type);
}

bool bind_atomic(Instruction& instruction, Words& words, bool returns) {
  if (words.has("async")) return false;
  take_order(instruction, words);
  take_space(instruction, words);
  take_cache_words(instruction, words);
  words.take("noftz");
  const int vector = words.take_one_of({"v2", "v4", "v8"});
  instruction.count = vector < 0 ? 1 : 2u << vector;
  const int operation =
      words.take_one_of({"add", "min", "max", "exch", "cas", "inc", "dec", "and", "or", "xor"});
  instruction.type = words.take_type();
  const Type type = instruction.type;
  instruction.variant = returns;
  const size_t arguments = (returns ? 3u : 2u) + (operation == 4);
  if (type.kind == Kind::none || instruction.arguments.size() != arguments) return false;
  if (instruction.count > 1 && instruction.arguments.back().parts.size() != instruction.count) return false;
  settle_immediates(instruction, type);
  const bool is_float = type.kind == Kind::floating || type.kind == Kind::bfloat;
  if (is_float && operation != 0) return false;
  switch (operation) {
    case 0:
      instruction.execute = adding(type);
      break;
    case 1:
      instruction.execute = of_integer<Minimum>(type);
      break;
    case 2:
      instruction.execute = of_integer<Maximum>(type);
      break;
    case 3:
      instruction.execute = of_unsigned<Exchange>(type);
      break;
    case 4:
      instruction.execute = type.bytes() == 2 ? &change<uint16_t, Compare> : of_unsigned<Compare>(type);
      break;
    case 5:
      instruction.execute = &change<uint32_t, Increase>;
      break;
    case 6:
      instruction.execute = &change<uint32_t, Decrease>;
      break;
    case 7:
      instruction.execute = of_unsigned<And>(type);
      break;
    case 8:
      instruction.execute = of_unsigned<Or>(type);
      break;
    case 9:
      instruction.execute = of_unsigned<Xor>(type);
      break;
    default:
      return false;
  }
  return instruction.execute != nullptr;
}
bool bind_atom(Instruction& instruction, Words& words) { return bind_atomic(instruction, words, true); }
bool bind_red(Instruction& instruction, Words& words) { return bind_atomic(instruction, words, false); }

// --- addresses

bool bind_cvta(Instruction& instruction, Words& words) {
  const bool to = words.take("to");
  const bool is_shared = words.take("shared") || words.take("shared::cta") || words.take("shared::cluster");
  if (!is_shared && words.take_one_of({"global", "local", "const", "param", "param::entry"}) < 0)
    return false;
  if (words.take_type().kind == Kind::none || instruction.arguments.size() != 2) return false;
  if (!is_shared) {
    instruction.execute = [](Frame& frame, const Instruction& it) {
      frame.write(it.arguments[0].ref, frame.read(it.arguments[1].ref));
    };
  } else if (to) {
    instruction.execute = [](Frame& frame, const Instruction& it) {
      const uint64_t pointer = frame.read(it.arguments[1].ref);
      frame.write(it.arguments[0].ref, cpu_device::to_shared_window(reinterpret_cast<const void*>(pointer)));
    };
  } else {
    instruction.execute = [](Frame& frame, const Instruction& it) {
      const uint64_t address = frame.read(it.arguments[1].ref);
      const auto place =
          cpu_device::find_in_shared_window(address, 0, /*of_cluster=*/true, it.label, frame.where);
      frame.write(it.arguments[0].ref, reinterpret_cast<uintptr_t>(place.pointer));
    };
  }
  return true;
}

/// `mapa.shared::cluster` makes a number of the window of one, `mapa` a pointer of a pointer.
bool bind_mapa(Instruction& instruction, Words& words) {
  const bool is_shared = words.take("shared::cluster");
  if (words.take_type().kind == Kind::none || instruction.arguments.size() != 3) return false;
  instruction.label = "mapa";
  instruction.flag = is_shared;
  instruction.execute = [](Frame& frame, const Instruction& it) {
    const uint64_t address = frame.read(it.arguments[1].ref);
    const auto rank = frame.get<uint32_t>(it.arguments[2].ref);
    const void* own = reinterpret_cast<const void*>(address);
    if (it.flag) own = cpu_device::find_in_shared_window(address, 0, false, it.label, frame.where).pointer;
    const void* const there = cpu_device::map_shared(own, rank, frame.where);
    frame.write(it.arguments[0].ref,
                it.flag ? cpu_device::to_shared_window(there) : reinterpret_cast<uintptr_t>(there));
  };
  return true;
}

bool bind_getctarank(Instruction& instruction, Words& words) {
  instruction.flag = words.take("shared::cluster");
  if (words.take_type().kind == Kind::none || instruction.arguments.size() != 2) return false;
  instruction.execute = [](Frame& frame, const Instruction& it) {
    uint64_t address = frame.read(it.arguments[1].ref);
    if (!it.flag) address = cpu_device::to_shared_window(reinterpret_cast<const void*>(address));
    frame.write(
        it.arguments[0].ref,
        cpu_device::find_in_shared_window(address, 0, /*of_cluster=*/true, it.label, frame.where).rank);
  };
  return true;
}

bool bind_isspacep(Instruction& instruction, Words& words) {
  const int space =
      words.take_one_of({"shared", "shared::cta", "shared::cluster", "global", "local", "const"});
  if (space < 0 || instruction.arguments.size() != 2) return false;
  instruction.mode = space;
  instruction.execute = [](Frame& frame, const Instruction& it) {
    const auto* const pointer = reinterpret_cast<const void*>(frame.read(it.arguments[1].ref));
    const bool yes = it.mode < 2 ? cpu_device::is_shared(pointer)
                     : it.mode == 2
                         ? cpu_device::from_shared_window(cpu_device::to_shared_window(pointer)) == pointer
                     : it.mode == 3 ? cpu_device::is_global(pointer)
                     : it.mode == 4 ? cpu_device::is_local(pointer)
                                    : false;
    frame.write(it.arguments[0].ref, yes);
  };
  return true;
}

/// Changes nothing here.
bool bind_nothing(Instruction& instruction, Words& words) {
  while (!words.take_prefix("").empty()) {
  }
  instruction.execute = [](Frame&, const Instruction&) {};
  return true;
}

bool bind_prefetch(Instruction& instruction, Words& words) {
  if (!words.take("tensormap")) return bind_nothing(instruction, words);
  words.take_one_of({"const", "param"});
  instruction.execute = [](Frame& frame, const Instruction& it) {
    cpu_device::tma_prefetch(reinterpret_cast<const void*>(frame.address(it.arguments[0])), frame.where);
  };
  return instruction.arguments.size() == 1;
}

constexpr TableEntry kTable[] = {
    {"ld", &bind_load},           {"ldu", &bind_load},
    {"st", &bind_store},          {"atom", &bind_atom},
    {"red", &bind_red},           {"cvta", &bind_cvta},
    {"mapa", &bind_mapa},         {"getctarank", &bind_getctarank},
    {"isspacep", &bind_isspacep}, {"prefetch", &bind_prefetch},
    {"prefetchu", &bind_nothing}, {"applypriority", &bind_nothing},
    {"discard", &bind_nothing},   {"createpolicy", &bind_nothing},
};

}  // namespace

Table memory_table() { return {kTable, std::size(kTable)}; }

void take_space(Instruction& instruction, Words& words) {
  const int space = words.take_one_of(
      {"shared", "shared::cta", "shared::cluster", "global", "local", "const", "param", "param::entry"});
  instruction.space = space < 0 ? kGeneric : space < 3 ? kShared : space == 3 ? kGlobal : kGeneric;
  instruction.of_cluster = space == 2;
}

void* find(const Frame& frame, const Instruction& instruction, int argument, size_t bytes) {
  const Argument& at = instruction.arguments[static_cast<size_t>(argument)];
  const uint64_t address = frame.address(at);
  if (instruction.space == kShared) {
    void* const place = cpu_device::find_in_shared_window(address, bytes, instruction.of_cluster,
                                                          instruction.label, frame.where)
                            .pointer;
    check_alignment(frame, instruction, address, bytes);
    return place;
  }
  auto* const pointer = reinterpret_cast<void*>(address);
  check_alignment(frame, instruction, address, bytes);
  if (instruction.space == kGlobal && cpu_device::is_shared(pointer)) {
    cpu_device::report_misuse(
        (std::string(instruction.label) + ": the pointer is to shared memory, not to global memory").c_str(),
        frame.where);
  }
  return pointer;
}

void check_alignment(const Frame& frame, const Instruction& instruction, uint64_t address, size_t bytes) {
  if (!bytes || address % bytes == 0) return;
  cpu_device::report_misuse((std::string(instruction.label) + ": the address is not a multiple of " +
                             std::to_string(bytes) + ", as an access of so many bytes needs it")
                                .c_str(),
                            frame.where);
}

}  // namespace ladder::inline_ptx
