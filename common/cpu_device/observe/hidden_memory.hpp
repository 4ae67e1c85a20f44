/// @file
/// Device memory, which the host cannot reach: its pages are closed, except while an operation of the device
/// runs. An access meanwhile is reported with its place, and ends the program.
///
/// Under AddressSanitizer, which has a say in faults itself, nothing is hidden.
#pragma once
#include <cstddef>
#include <string>

namespace cpu_device {

/// From now on the host cannot reach these bytes. `begin` is the beginning of a page, and nothing else lies
/// in the pages of these bytes.
void hide_from_host(std::byte* begin, size_t bytes, const std::string& name);
/// They are memory as any other. Nothing happens if they were not hidden.
void show_to_host(std::byte* begin);

/// While one lives, hidden memory can be touched: an operation of the device runs.
struct HiddenMemoryIsOpen {
  HiddenMemoryIsOpen();
  ~HiddenMemoryIsOpen();
  HiddenMemoryIsOpen(const HiddenMemoryIsOpen&) = delete;
};

/// While one lives, this OS thread's faults are those of a host function.
struct FaultsAreNamed {
  /// @param name "the host function on stream 1". @param place where it was enqueued. Both live as long as
  /// this.
  FaultsAreNamed(const char* name, const char* place);
  ~FaultsAreNamed();
  FaultsAreNamed(const FaultsAreNamed&) = delete;
};

}  // namespace cpu_device
