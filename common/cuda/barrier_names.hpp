/// @file
/// What mbarriers are called in reports and timelines: as the source calls them. Kernels give barriers no
/// names; the flavours of a build that report note the line where each was initialised, and the name is read
/// there.
#pragma once
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ladder {

/// Where an mbarrier was initialised.
struct BarrierOrigin {
  const char* file = "";
  unsigned line = 0;
  const char* end = "";  ///< of a pipeline: "full" or "empty"
  int slot = 0;          ///< of that pipeline
  /// Of the reader's, whose call in that line initialises it: `init_barrier(&full[i], 1)`, `full[i].init(1)`.
  const char* function = "mbarrier_init";
};

/// The name of the barrier that is number `number` of those which its block initialised at the same place, by
/// their addresses; `several` says whether there are others.
///
///     smem.pipe_lc.init(1, 2)                     pipe_lc.full[slot] and pipe_lc.empty[slot]
///     smem.pipe_cs[i].init(128, 1)                pipe_cs[number].full[slot], ...
///     ptx::mbarrier_init(&inbox.full, 1)          inbox.full; inbox.full[number] if there are several
///     ptx::mbarrier_init(&smem.turn[i], 128)      turn[number]
///
/// Where the source cannot be read, or several calls share a line, the name is made of "file:line".
/// Thread-safe.
std::string barrier_name(const BarrierOrigin& origin, unsigned number, bool several);

/// Whether the character may stand in a name of C++.
inline bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// The text of a source from a line on, as far as a call may reach; empty if it cannot be read, or is newer
/// than the program.
std::string source_from(const char* path, unsigned line);

/// Was the source changed after the program was built? Then its lines may not be those that the program
/// knows: nothing is read in it, and the first time a line on stderr says so. Thread-safe.
bool is_newer_than_program(const std::string& source);

/// What a kernel on the GPU leaves behind of a barrier.
struct BarrierNote {
  uint32_t launch;  ///< tells launches apart
  uint32_t address;
  uint32_t line;
  int32_t slot;
  char end[8];
  char file[232];
};

/// The name of the barrier at `address`, of which the last of these notes speaks; empty if none does.
std::string name_in_notes(const BarrierNote* notes, size_t count, uint32_t address);

/// Does the line call `origin.function`, or `init` of a pipeline, once?
bool names_barrier(const BarrierOrigin& origin);

/// For tests: the barrier or pipeline that is initialised in the line where `source` begins, as it is written
/// there; empty if no or more than one call is found.
std::string initialised_in(const std::string& source, bool is_pipeline,
                           const std::string& function = "mbarrier_init");

}  // namespace ladder
