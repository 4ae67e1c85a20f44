/// @file
/// What the rewritten file of a reader calls where an asm statement stood: one static Site for each
/// statement, and its operands in their order.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

// Loads and stores of the hooks would be seen; operands lie on the stack, and are many.
#if defined(__SANITIZE_THREAD__) || defined(__clang__)
#define LADDER_INLINE_PTX_UNSEEN __attribute__((no_sanitize("thread")))
#else
#define LADDER_INLINE_PTX_UNSEEN
#endif

namespace ladder::inline_ptx {

struct Program;

/// One operand. An output is a variable of the reader's, an input a value.
struct Operand {
  const char* constraint = "";
  const char* name = "";  ///< of "%[name]"; may be empty
  void* variable = nullptr;
  uint64_t value[2] = {};  ///< sign-extended; of the constraint "C" a pointer to its text
  uint32_t bytes = 0;
};

/// An operand that the statement writes; `name` is empty or that of `%[name]`.
template <class T>
LADDER_INLINE_PTX_UNSEEN Operand out(const char* constraint, const char* name, T& variable) {
  Operand operand{constraint, name, nullptr, {}, sizeof(T)};
  operand.variable = const_cast<std::remove_cv_t<T>*>(&variable);
  return operand;
}

/// An operand that the statement reads and writes; `name` is empty or that of `%[name]`.
template <class T>
LADDER_INLINE_PTX_UNSEEN Operand inout(const char* constraint, const char* name, T& variable) {
  return out(constraint, name, variable);
}

/// By value: who reads a variable for it is the reader's line.
template <class T>
LADDER_INLINE_PTX_UNSEEN Operand in(const char* constraint, const char* name, T value) {
  Operand operand{constraint, name, nullptr, {}, sizeof(T)};
  if constexpr (std::is_pointer_v<T>) {
    operand.value[0] = reinterpret_cast<uintptr_t>(value);
  } else if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
    if constexpr (sizeof(T) > sizeof(uint64_t)) {
      std::memcpy(operand.value, &value, sizeof value);
    } else {
      operand.value[0] = static_cast<uint64_t>(static_cast<int64_t>(value));
    }
  } else if constexpr (std::is_same_v<T, double>) {
    if (constraint[0] == 'f') return in(constraint, name, static_cast<float>(value));
    std::memcpy(operand.value, &value, sizeof value);
  } else {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(operand.value));
    std::memcpy(operand.value, &value, sizeof value);
  }
  return operand;
}

/// One asm statement. Its text is parsed when it is executed first.
class Site {
 public:
  /// All three must outlive the program.
  constexpr Site(const char* text, const char* file, unsigned line) : text_(text), file_(file), line_(line) {}
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  /// Executes the statement for the running thread. @throws as the operations of cpu_device/kernel/engine.hpp
  /// do
  template <class... Operands>
  [[gnu::noinline]] LADDER_INLINE_PTX_UNSEEN void run(const Operands&... operands) {
    const Operand* const list[sizeof...(operands) + 1] = {&operands..., nullptr};
    execute(list, sizeof...(operands));
  }

 private:
  void execute(const Operand* const* operands, size_t count);
  const Program& program(const Operand* const* operands, size_t count);

  const char* const text_;
  const char* const file_;
  const unsigned line_;
  std::atomic<const Program*> program_{nullptr};
};

}  // namespace ladder::inline_ptx
