/// @file
/// Executes asm statements: their operands, registers and branches.
#include <atomic>
#include <mutex>

#include "common/cpu_device/kernel/engine.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/own_kernel/ptx/program.hpp"

namespace ladder::inline_ptx {
namespace {

/// Steps on every look, on all threads: loops that wait for a time end.
uint64_t ticks(unsigned step) {
  static std::atomic<uint64_t> time{0};
  return time += step;
}

unsigned component(const cpu_device::Uint3& of, unsigned axis) {
  return axis == 0 ? of.x : axis == 1 ? of.y : of.z;
}

uint64_t read_special(const Ref& ref) {
  const cpu_device::ThreadIds& ids = *cpu_device::current_thread_ids;
  const cpu_device::BlockIds& block = *ids.block;
  const unsigned axis = ref.axis, lane = ids.rank % 32;
  const unsigned in_cluster = component(block.cluster_dim, axis);
  switch (ref.special) {
    case Special::tid:
      return component(ids.index, axis);
    case Special::ntid:
      return component(block.block_dim, axis);
    case Special::ctaid:
      return component(block.index, axis);
    case Special::nctaid:
      return component(block.grid_dim, axis);
    case Special::laneid:
      return lane;
    case Special::warpid:
      return ids.rank / 32;
    case Special::nwarpid:
      return (block.threads + 31) / 32;
    case Special::smid:
      return block.index.x;  // every block has one of its own
    case Special::nsmid:
      return 132;
    case Special::lanemask_eq:
      return 1u << lane;
    case Special::lanemask_le:
      return (uint64_t{2} << lane) - 1;
    case Special::lanemask_lt:
      return (1u << lane) - 1;
    case Special::lanemask_ge:
      return static_cast<uint32_t>(~((1u << lane) - 1));
    case Special::lanemask_gt:
      return static_cast<uint32_t>(~((uint64_t{2} << lane) - 1));
    case Special::clock:
      return static_cast<uint32_t>(ticks(64));
    case Special::clock_hi:
      return ticks(64) >> 32;
    case Special::clock64:
      return ticks(64);
    case Special::globaltimer:
      return ticks(1024);
    case Special::globaltimer_hi:
      return ticks(1024) >> 32;
    case Special::cluster_ctaid:
      return component(block.index, axis) % in_cluster;
    case Special::cluster_nctaid:
      return in_cluster;
    case Special::clusterid:
      return component(block.index, axis) / in_cluster;
    case Special::nclusterid:
      return component(block.grid_dim, axis) / in_cluster;
    case Special::cluster_ctarank:
      return block.rank_in_cluster;
    case Special::cluster_nctarank:
      return block.cluster_dim.count();
    case Special::is_explicit_cluster:
      return block.cluster_dim.count() > 1;
    case Special::dynamic_smem_size:
      return cpu_device::shared_memory_bytes();
    case Special::gridid:
    case Special::zero:
      break;
  }
  return 0;
}

uint64_t read_bytes(const void* from, size_t bytes) {
  uint64_t value = 0;
  std::memcpy(&value, from, bytes < sizeof value ? bytes : sizeof value);
  return value;
}

uint64_t mask_of(unsigned bytes) { return bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1; }

}  // namespace

uint64_t Frame::read(const Ref& ref) const {
  switch (ref.kind) {
    case Ref::Kind::operand: {
      const Operand& operand = *operands[ref.index];
      return operand.variable ? read_bytes(operand.variable, operand.bytes) : operand.value[0];
    }
    case Ref::Kind::local:
      return locals[ref.index][0];
    case Ref::Kind::immediate:
      return ref.immediate;
    case Ref::Kind::special:
      return read_special(ref);
    case Ref::Kind::sink:
    case Ref::Kind::none:
      break;
  }
  return 0;
}

void Frame::read_wide(const Ref& ref, uint64_t (&value)[2]) const {
  if (ref.kind == Ref::Kind::operand) {
    const Operand& operand = *operands[ref.index];
    value[0] = value[1] = 0;
    if (operand.variable) {
      std::memcpy(value, operand.variable, operand.bytes < sizeof value ? operand.bytes : sizeof value);
    } else {
      std::memcpy(value, operand.value, sizeof value);
    }
  } else if (ref.kind == Ref::Kind::local) {
    std::memcpy(value, locals[ref.index], sizeof value);
  } else {
    value[0] = read(ref);
    value[1] = 0;
  }
}

void Frame::write(const Ref& ref, uint64_t value) const {
  if (ref.kind == Ref::Kind::operand) {
    const Operand& operand = *operands[ref.index];
    std::memcpy(operand.variable, &value, operand.bytes < sizeof value ? operand.bytes : sizeof value);
  } else if (ref.kind == Ref::Kind::local) {
    locals[ref.index][0] = value & mask_of(ref.bytes);
  }
}

void Frame::write_wide(const Ref& ref, const uint64_t (&value)[2]) const {
  if (ref.kind == Ref::Kind::operand) {
    const Operand& operand = *operands[ref.index];
    std::memcpy(operand.variable, value, operand.bytes < sizeof value ? operand.bytes : sizeof value);
  } else if (ref.kind == Ref::Kind::local) {
    std::memcpy(locals[ref.index], value, sizeof value);
  }
}

const Program& Site::program(const Operand* const* operands, size_t count) {
  if (const Program* known = program_.load(std::memory_order_acquire)) return *known;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const Program* known = program_.load(std::memory_order_acquire)) return *known;
  const auto* const parsed = new Program(parse(text_, operands, count));  // lives as long as the site
  program_.store(parsed, std::memory_order_release);
  return *parsed;
}

void Site::execute(const Operand* const* operands, size_t count) {
  constexpr unsigned kLocals = 64;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wframe-address"  // run() is not inlined, and all has frame pointers
  const cpu_device::Location where{file_, line_, __builtin_return_address(1), __builtin_return_address(2)};
#pragma GCC diagnostic pop
  const Program& statement = program(operands, count);
  if (!statement.error.empty()) cpu_device::report_misuse(statement.error.c_str(), where);
  uint64_t few[kLocals][2];
  std::vector<uint64_t> many;
  Frame frame{operands, few, where};
  if (statement.locals > kLocals) {
    many.resize(size_t{2} * statement.locals);
    frame.locals = reinterpret_cast<uint64_t(*)[2]>(many.data());
  } else {
    std::memset(few, 0, statement.locals * sizeof few[0]);
  }
  const auto end = static_cast<uint32_t>(statement.instructions.size());
  while (frame.next < end) {
    const Instruction& instruction = statement.instructions[frame.next++];
    if (instruction.predicate.kind == Ref::Kind::none || frame.test(instruction.predicate))
      instruction.execute(frame, instruction);
  }
  for (size_t i = 0; i < count; ++i) {
    const Operand& operand = *operands[i];
    if (operand.variable && !cpu_device::is_local(operand.variable))
      cpu_device::note_access(operand.variable, operand.bytes, /*write=*/true, "asm output", where);
  }
}

}  // namespace ladder::inline_ptx
