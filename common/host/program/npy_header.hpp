/// @file
/// The header of an .npy file: the text of a Python dictionary.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ladder {

struct NpyHeader {
  std::string descr;  ///< the type of the elements, for example "<f4"
  bool fortran_order = false;
  std::vector<uint64_t> shape;
};

/// Parses "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".
/// @throws std::invalid_argument saying what is not as expected
NpyHeader parse_npy_header(const std::string& text);

}  // namespace ladder
