/// @file
/// ldmatrix, stmatrix, mma.sync and wgmma.
#include <charconv>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

using cpu_device::MmaInput;
using Kind = Type::Kind;

/// Of ldmatrix and stmatrix; only the rows of the first 8 lanes for each matrix are looked at.
void* row_of(const Frame& frame, const Instruction& it, size_t argument) {
  if (cpu_device::current_thread_ids->rank % 32 >= 8 * it.count) return nullptr;
  return cpu_device::find_in_shared_window(frame.address(it.arguments[argument]), 16, /*of_cluster=*/false,
                                           it.label, frame.where)
      .pointer;
}

const Ref& part(const Argument& argument, size_t i) {
  return argument.kind == Argument::Kind::vector ? argument.parts[i] : argument.ref;
}
size_t parts(const Argument& argument) {
  return argument.kind == Argument::Kind::vector ? argument.parts.size() : 1;
}

void load_matrix(Frame& frame, const Instruction& it) {
  uint32_t registers[4];
  cpu_device::ldmatrix(registers, static_cast<int>(it.count), row_of(frame, it, 1), it.flag, frame.where);
  for (uint32_t i = 0; i < it.count; ++i) frame.write(part(it.arguments[0], i), registers[i]);
}

void store_matrix(Frame& frame, const Instruction& it) {
  uint32_t registers[4];
  for (uint32_t i = 0; i < it.count; ++i)
    registers[i] = static_cast<uint32_t>(frame.read(part(it.arguments[1], i)));
  cpu_device::stmatrix(row_of(frame, it, 0), registers, static_cast<int>(it.count), it.flag, frame.where);
}

bool bind_matrix(Instruction& it, Words& words, bool is_load) {
  const int count = words.take_one_of({"x1", "x2", "x4"});
  it.label = is_load ? "ldmatrix" : "stmatrix";
  it.flag = words.take("trans");
  if (count < 0 || !words.take("sync") || !words.take("aligned") || !words.take("m8n8") ||
      words.take_one_of({"shared", "shared::cta"}) < 0 || words.take_type() != Type{Kind::bits, 16, 1})
    return false;
  it.count = 1u << count;
  it.execute = is_load ? &load_matrix : &store_matrix;
  return it.arguments.size() == 2 && it.arguments[is_load ? 1 : 0].kind == Argument::Kind::address &&
         parts(it.arguments[is_load ? 0 : 1]) == it.count;
}
bool bind_ldmatrix(Instruction& it, Words& words) { return bind_matrix(it, words, true); }
bool bind_stmatrix(Instruction& it, Words& words) { return bind_matrix(it, words, false); }

/// The types of products that tensor cores have here.
bool to_input(Type type, MmaInput& input) {
  if (type == Type{Kind::floating, 16, 1}) {
    input = MmaInput::f16;
  } else if (type == Type{Kind::bfloat, 16, 1}) {
    input = MmaInput::bf16;
  } else if (type.kind == Kind::tf32) {
    input = MmaInput::tf32;
  } else {
    return false;
  }
  return true;
}

/// Floats, or fp16: which, is `half`.
bool to_sums(Type type, bool& half) {
  half = type == Type{Kind::floating, 16, 1};
  return half || type == Type{Kind::floating, 32, 1};
}

// --- mma.sync: `count` is the depth, `variant` the input, `flag`: sums of fp16

void read_parts(const Frame& frame, const Argument& from, uint32_t* to) {
  for (size_t i = 0; i < parts(from); ++i) to[i] = static_cast<uint32_t>(frame.read(part(from, i)));
}

void multiply(Frame& frame, const Instruction& it) {
  cpu_device::MmaSync operands;
  operands.input = static_cast<MmaInput>(it.variant);
  operands.depth = static_cast<int>(it.count);
  operands.half_sums = it.flag;
  read_parts(frame, it.arguments[1], operands.a);
  read_parts(frame, it.arguments[2], operands.b);
  read_parts(frame, it.arguments[3], operands.c);
  cpu_device::mma_sync(operands, frame.where);
  const Argument& d = it.arguments[0];
  for (size_t i = 0; i < parts(d); ++i) frame.write(part(d, i), operands.d[i]);
}

bool bind_mma(Instruction& it, Words& words) {
  it.label = "mma.sync";
  if (!words.take("sync") || !words.take("aligned") || !words.take("row") || !words.take("col")) return false;
  const int shape = words.take_one_of({"m16n8k8", "m16n8k16", "m16n8k4"});
  const Type d = words.take_type(), a = words.take_type(), b = words.take_type(), c = words.take_type();
  MmaInput input = MmaInput::bf16;
  if (shape < 0 || a != b || c != d || !to_input(a, input) || !to_sums(d, it.flag)) return false;
  if (input != MmaInput::f16 && it.flag) return false;
  const bool is_tf32 = input == MmaInput::tf32;
  if (is_tf32 ? shape == 1 : shape == 2) return false;
  it.count = shape == 0 ? 8 : shape == 1 ? 16 : 4;
  it.variant = static_cast<int>(input);
  it.execute = &multiply;
  settle_immediates(it, {Kind::floating, 32, 1});
  const size_t sums = it.flag ? 2 : 4, pairs = it.count / (is_tf32 ? 4 : 8);
  return it.arguments.size() == 4 && parts(it.arguments[0]) == sums && parts(it.arguments[1]) == 2 * pairs &&
         parts(it.arguments[2]) == pairs && parts(it.arguments[3]) == sums;
}

// --- wgmma

constexpr size_t kMaxSums = 128;

/// `count` is N, `variant` the input, `flag`: sums of fp16.
void multiply_async(Frame& frame, const Instruction& it) {
  cpu_device::Wgmma what;
  what.columns = static_cast<int>(it.count);
  what.input = static_cast<MmaInput>(it.variant);
  what.half_sums = it.flag;
  const Argument &d = it.arguments[0], &a = it.arguments[1];
  if (a.kind == Argument::Kind::vector) {
    what.a_in_registers = true;
    read_parts(frame, a, what.a_registers);
  } else {
    what.a = frame.read(a.ref);
  }
  what.b = frame.read(it.arguments[2].ref);
  what.accumulate = frame.test(it.arguments[3].ref);
  const auto constant = [&](size_t i) { return static_cast<int32_t>(frame.read(it.arguments[i].ref)); };
  what.negate_a = constant(4) < 0;
  what.negate_b = constant(5) < 0;
  if (what.a_in_registers) {
    what.b_row_major = it.arguments.size() > 6 && constant(6);
  } else if (it.arguments.size() == 8) {
    what.a_column_major = constant(6) != 0;
    what.b_row_major = constant(7) != 0;
  }
  void* sums[kMaxSums];
  for (size_t i = 0; i < d.parts.size(); ++i) sums[i] = frame.operands[d.parts[i].index]->variable;
  cpu_device::wgmma(what, sums, /*is_kept=*/true, frame.where);
}

bool bind_mma_async(Instruction& it, Words& words) {
  it.label = "wgmma";
  const std::string shape = words.take_prefix("m64n");
  unsigned columns = 0;
  const auto [end, error] = std::from_chars(shape.data(), shape.data() + shape.size(), columns);
  const Type d = words.take_type(), a = words.take_type(), b = words.take_type();
  MmaInput input = MmaInput::bf16;
  if (error != std::errc() || std::string_view(end) != "k16" || columns % 8 || columns < 8 || columns > 256 ||
      a != b || !to_input(a, input) || !to_sums(d, it.flag) || input == MmaInput::tf32 ||
      (it.flag && input != MmaInput::f16))
    return false;
  it.count = columns;
  it.variant = static_cast<int>(input);
  it.execute = &multiply_async;
  if (it.arguments.size() < 6 || it.arguments.size() > 8 || it.arguments[0].kind != Argument::Kind::vector ||
      it.arguments[0].parts.size() != columns / (it.flag ? 4 : 2))
    return false;
  for (const Ref& sum : it.arguments[0].parts)
    if (sum.kind != Ref::Kind::operand) return false;
  return it.arguments[1].kind == Argument::Kind::vector ? it.arguments[1].parts.size() == 4
                                                        : it.arguments.size() != 7;
}

bool bind_wgmma(Instruction& it, Words& words) {
  const int kind = words.take_one_of({"fence", "commit_group", "wait_group", "mma_async"});
  if (!words.take("sync") || !words.take("aligned")) return false;
  switch (kind) {
    case 0:
      it.execute = [](Frame& frame, const Instruction&) { cpu_device::wgmma_fence(frame.where); };
      return it.arguments.empty();
    case 1:
      it.execute = [](Frame& frame, const Instruction&) { cpu_device::wgmma_commit_group(frame.where); };
      return it.arguments.empty();
    case 2:
      it.execute = [](Frame& frame, const Instruction& it) {
        cpu_device::wgmma_wait_group(static_cast<unsigned>(frame.read(it.arguments[0].ref)), frame.where);
      };
      return it.arguments.size() == 1;
    default:
      return kind == 3 && bind_mma_async(it, words);
  }
}

constexpr TableEntry kTable[] = {
    {"ldmatrix", &bind_ldmatrix}, {"stmatrix", &bind_stmatrix}, {"mma", &bind_mma}, {"wgmma", &bind_wgmma}};

}  // namespace

Table tensor_core_table() { return {kTable, std::size(kTable)}; }

}  // namespace ladder::inline_ptx
