/// @file
/// Source lines of return addresses, for reports.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/cpu_device/base/location.hpp"

namespace cpu_device {

/// Where this program's own code is loaded; addresses minus this are what debug information speaks of.
uintptr_t program_load_address();

/// The last two parts of a path: "02_tiled/gemm.cuh".
std::string short_path(const std::string& path);

/// The place of the call that returns to `return_address`: "02_tiled/gemm.cuh:88 in load_tiles", followed by
/// the calls it is inlined into. Runs addr2line, so only reports should ask. Without addr2line or debug
/// information: the module and the offset in it.
std::string describe_call_site(uintptr_t return_address);

/// The calls that return to these addresses, the innermost first: "02_tiled/gemm.cuh:88 in load_tiles", with
/// those that are inlined, and without the CPU device's own. Empty without addr2line or debug information.
std::vector<std::string> source_calls(const uintptr_t* return_addresses, unsigned count);

/// A call of a function of the reader's.
struct HelperCall {
  std::string file;
  unsigned line = 0;  ///< 0: not known
  std::string function;
};
/// The call of the innermost function around an operation.
HelperCall call_of_helper(const Location&);

/// Those of them that lie in a lesson, an exercise, a test or a program of the reader's, not in what lessons
/// share.
std::vector<std::string> own_calls(const std::vector<uintptr_t>& return_addresses);
/// Who called the function that asks, from the innermost on.
std::vector<uintptr_t> calling_now();

/// What follows the "file:line" of a call in a report: " in copy, called from 02_tiled/gemm.cuh:57 in
/// stream", where calls are inlined. Empty if the call is not known to be there.
std::string describe_callers(const Location&);

/// A line that readers look for first: of a lesson, not of what lessons share.
struct OwnLine {
  std::string place;  ///< "gemm.cuh:82"
  /// The operands in shared memory that it names, as it is written there: "smem.a[slot]". If it names none,
  /// those of the line that calls it.
  std::vector<std::string> operands;
  std::string caller = {};  ///< the outermost such line, where `place` is another
  /// The operands are those of the line that accesses memory, not of one that calls it; and that line as a
  /// whole.
  bool is_direct = false;
  std::string statement = {};
  struct Call {
    std::string place, function;
  };
  std::vector<Call> calls = {};  ///< all such lines, `place` first
};
/// The innermost such line of the calls to an operation; where there is none, or no debug information, the
/// line that calls the operation.
OwnLine own_line(const Location&);

/// The operand that both name, else the only one that one of them names where the other names none; empty if
/// that is not clear.
std::string shared_operand(const OwnLine& one, const OwnLine& other);

/// For tests: the operands in shared memory in a line of the source.
std::vector<std::string> operands_in(const std::string& text);

/// An argument of the call of `function` in that line of the source, as it is written, without a `.get()`
/// behind it; empty where it is not found.
std::string argument_of_call(const Location&, const std::string& function, unsigned argument);

/// An object that the source makes in a loop.
struct MadeInLoop {
  std::string object, loop;  ///< "gemm.cuh:46"; empty if it is not found, or made in no loop
};
/// Of the innermost line that readers look for: whether above it, in its file, an object of this type is made
/// of this argument, in a loop. "Producer pipe(smem.pipe);" is one of type Producer, of "pipe".
MadeInLoop made_in_loop(const Location&, const std::string& type, const std::string& argument);
/// For tests: the lines of both in a source, as far as its line `line`; 0 where there is none.
std::pair<unsigned, unsigned> lines_made_in_loop(const std::string& source, unsigned line,
                                                 const std::string& type, const std::string& argument);

/// Where the function begins, "/path/05_ws_double_buffer/gemm.cuh:143"; empty likewise.
std::string line_of_function(const void* function);

}  // namespace cpu_device
