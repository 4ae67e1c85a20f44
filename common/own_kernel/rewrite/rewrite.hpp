/// @file
/// Makes C++ for the CPU device of a preprocessed CUDA source.
///
/// Only tokens of the reader's own files change, and every other token keeps its file and line:
/// - `K<<<g, b, s, st>>>(args)` calls a ladder::own::Launcher,
/// - `__shared__ D;` becomes references into the block's shared memory,
/// - `asm("text" : outputs : inputs : clobbers);` calls the interpreter of inline PTX.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ladder {

/// What cannot be rewritten: "FILE:LINE: why".
struct CannotRewrite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @param preprocessed with line markers
/// @param is_own whether a file is the reader's, by its path and whether it is a system header
/// @throws CannotRewrite
std::string rewritten(std::string_view preprocessed,
                      const std::function<bool(const std::string&, bool)>& is_own);

}  // namespace ladder
