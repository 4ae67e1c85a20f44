/// @file
/// NumPy's file format for matrices (.npy, versions 1.0 to 3.0): little-endian '<f8', '<f4', '<f2', and bf16,
/// which NumPy does not know and stores as '|V2'; or as '<u2', which may as well be whole numbers.
/// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once
#include <string>
#include <vector>

namespace ladder {

/// A row-major matrix.
struct NpyMatrix {
  size_t rows = 0, columns = 0;
  std::vector<float> values;
};

/// Reads a matrix; one stored column by column is turned. Values of '<f8' are rounded to fp32; NaN is
/// allowed.
/// @param argument what the reader called the path, for messages
/// @param uint16_is_bf16 whether '<u2' is the bits of bf16; else it is refused
/// @throws std::invalid_argument naming the file and what is wrong: missing, malformed, cut short, another
/// type of element, not two dimensions
NpyMatrix read_npy(const std::string& argument, const std::string& path, bool uint16_is_bf16 = false);

/// The types that write_npy knows, by their names on the command line.
const std::vector<std::string>& npy_dtypes();

/// Writes version 1.0, row-major; the file appears whole or not at all.
/// @param dtype one of npy_dtypes()
/// @throws std::invalid_argument
void write_npy(const std::string& argument, const std::string& path, const NpyMatrix& matrix,
               const std::string& dtype);

}  // namespace ladder
