/// @file
/// A parsed asm statement: a list of instructions, each with the function that executes it.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/own_kernel/ptx/asm.hpp"

namespace ladder::inline_ptx {

/// A type of PTX: the letter and the number of ".u32"; of packed ones the element's.
struct Type {
  enum class Kind : uint8_t { none, bits, unsigned_int, signed_int, floating, bfloat, tf32, predicate };
  Kind kind = Kind::none;
  uint8_t bits = 0;
  uint8_t elements = 1;  ///< 2 of ".f16x2"

  unsigned bytes() const { return bits * elements / 8u; }
  bool is_integer() const { return kind <= Kind::signed_int; }
  bool operator==(const Type&) const = default;
};

/// A special register; `axis` is that of ".y".
enum class Special : uint8_t {
  tid,
  ntid,
  ctaid,
  nctaid,
  laneid,
  warpid,
  nwarpid,
  smid,
  nsmid,
  gridid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  clock,
  clock_hi,
  clock64,
  globaltimer,
  globaltimer_hi,
  cluster_ctaid,
  cluster_nctaid,
  clusterid,
  nclusterid,
  cluster_ctarank,
  cluster_nctarank,
  is_explicit_cluster,
  dynamic_smem_size,
  zero
};

/// Something that an instruction reads or writes.
struct Ref {
  enum class Kind : uint8_t { none, sink, operand, local, immediate, special };
  Kind kind = Kind::none;
  bool is_negated = false;           ///< "!p"
  bool is_floating_literal = false;  ///< an immediate of which `immediate` holds a double
  Special special = Special::zero;
  uint8_t axis = 0;
  uint8_t bytes = 0;  ///< of a local register
  uint16_t index = 0;
  uint64_t immediate = 0;
};

struct Argument {
  enum class Kind : uint8_t { value, address, vector, label };
  Kind kind = Kind::value;
  Ref ref;     ///< the value; the base of an address
  Ref second;  ///< of "d|p"
  int64_t offset = 0;
  std::vector<Ref> parts;  ///< of a vector; the coordinates of a tensor's address
  std::string label;
};

struct Frame;
struct Instruction;
using Function = void (*)(Frame&, const Instruction&);

struct Instruction {
  std::string name;        ///< "ld.shared.v4.f32": outlives all reports
  const char* label = "";  ///< how reports call it
  Function execute = nullptr;
  Ref predicate;  ///< none: always
  std::vector<Argument> arguments;
  // What the instruction's function reads; each family says what it uses.
  Type type, from, third, fourth;
  uint32_t count = 0;
  int variant = 0, mode = 0;
  bool flush = false, saturate = false, flag = false, of_cluster = false, is_in_loop = false;
  uint32_t target = 0;  ///< of a branch
  int scope = 0;        ///< of the text, for labels
  int space = 0;        ///< of an address: a Space
};

struct Program {
  std::string error;  ///< why it cannot run; then there are no instructions
  std::vector<Instruction> instructions;
  unsigned locals = 0;
};

/// What one execution of a statement holds.
struct Frame {
  const Operand* const* operands = nullptr;
  uint64_t (*locals)[2] = nullptr;
  cpu_device::Location where;
  uint32_t next = 0;  ///< instruction
  uint32_t jumps = 0;
  bool carry = false;

  /// The bits of a register or an operand, zeros above its width.
  uint64_t read(const Ref& ref) const;
  /// 16 bytes of it.
  void read_wide(const Ref& ref, uint64_t (&value)[2]) const;
  void write(const Ref& ref, uint64_t value) const;
  void write_wide(const Ref& ref, const uint64_t (&value)[2]) const;
  bool test(const Ref& ref) const { return (read(ref) != 0) != ref.is_negated; }

  /// The same as a value of type T.
  template <class T>
  T get(const Ref& ref) const {
    const uint64_t bits = read(ref);
    T value;
    std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
    return value;
  }
  /// Writes the bits of a value.
  template <class T>
  void set(const Ref& ref, T value) const {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    write(ref, bits);
  }
  /// The sum of a register and the number behind it, as in `[%r1 + 16]`.
  uint64_t address(const Argument& argument) const {
    return read(argument.ref) + static_cast<uint64_t>(argument.offset);
  }
};

/// The words of a mnemonic behind its first, as a binder takes them.
class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {}
  /// Was this word there? It is taken.
  bool take(std::string_view word);
  /// The first of these words that was there, as its index; -1 if none.
  int take_one_of(std::initializer_list<std::string_view> words);
  /// Is the first one before the second?
  bool has_before(std::string_view first, std::string_view second) const;
  bool has(std::string_view word) const;
  /// The first type; none if there is none.
  Type take_type();
  /// The first word that begins so, without that; empty if there is none.
  std::string take_prefix(std::string_view prefix);
  bool all_taken() const { return words_.empty(); }

 private:
  std::vector<std::string> words_;
};

/// Chooses the function of an instruction by the words of its mnemonic.
/// @return false for what the CPU device does not run
using Binder = bool (*)(Instruction&, Words&);
/// Of the first word of a mnemonic; null for what nobody knows.
Binder find_binder(std::string_view first_word);

/// Parses the text of a statement with these operands. Does not throw: see Program::error.
Program parse(const char* text, const Operand* const* operands, size_t count);

/// A decimal number where PTX wants bits: makes those of the type of all immediates.
void settle_immediates(Instruction&, Type);

struct TableEntry {
  std::string_view word;
  Binder binder;
};
struct Table {
  const TableEntry* begin;
  size_t count;
};
Table arithmetic_table();
Table conversion_table();
Table memory_table();
Table synchronisation_table();
Table asynchronous_table();
Table tensor_core_table();

// --- The addresses of operands ---------------------------------------------------------------------------

/// Instruction::space.
enum Space : int { kGeneric, kShared, kGlobal };
/// Takes ".shared", ".global" and so on.
void take_space(Instruction&, Words&);
/// The memory that an argument of this space names. @throws if it is not there
void* find(const Frame&, const Instruction&, int argument, size_t bytes);
/// @throws unless the address is a multiple of the bytes that are accessed together
void check_alignment(const Frame&, const Instruction&, uint64_t address, size_t bytes);
/// `st.async`, of which "async" has been taken.
bool bind_store_async(Instruction&, Words&);

}  // namespace ladder::inline_ptx
