/// @file
/// Where in the source a device operation was called.
#pragma once

namespace cpu_device {

/// Taken as the last, defaulted parameter of every device operation. std::source_location would do the same,
/// but clang 14 lacks it.
struct Location {
  const char* file = "";
  unsigned line = 0;
  /// Where the operation returns to, which says who called it there; null where nobody asks.
  const void* call = nullptr;
  /// And where its caller returns to, of operations that functions which all lessons share may call.
  const void* outer_call = nullptr;

  static constexpr Location current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) {
    return {file, line, nullptr, nullptr};
  }
};

/// By the text of the file's name, since every translation unit may have its own copy of it.
bool operator==(const Location&, const Location&);

}  // namespace cpu_device

/// Notes who calls the operation that this stands first in.
#define CPU_DEVICE_NOTE_CALL(where) \
  if (!(where).call) (where).call = __builtin_return_address(0)

/// The trailing parameter that tells an operation who called it.
#define CPU_DEVICE_WHERE ::cpu_device::Location where = ::cpu_device::Location::current()
