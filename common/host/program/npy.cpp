/// @file
/// Reads and writes matrices in NumPy's file format.
#include "common/host/program/npy.hpp"

#include <fmt/core.h>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>

#include "common/host/base/atomic_file.hpp"
#include "common/host/base/text.hpp"
#include "common/host/problem/bf16.hpp"
#include "common/host/problem/half.hpp"

static_assert(std::endian::native == std::endian::little, "files are little-endian, and so must be the host");

namespace ladder {
namespace {

constexpr char kMagic[] = "\x93NUMPY";  // and behind it the version, major and minor
constexpr size_t kMagicBytes = 6;

/// A type of element: what files call it, how large it is, and how it becomes a float and back.
struct Dtype {
  std::string name;                 ///< on the command line
  std::vector<std::string> descrs;  ///< in files; the first is written
  size_t bytes;
  float (*load)(const char* bytes);
  void (*store)(float value, char* bytes);
};

template <class Stored>
Stored load_as(const char* bytes) {
  Stored value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class Stored>
void store_as(Stored value, char* bytes) {
  std::memcpy(bytes, &value, sizeof value);
}

const std::vector<Dtype>& dtypes() {
  static const std::vector<Dtype> all = {
      {"f4", {"<f4"}, 4, load_as<float>, store_as<float>},
      {"f2",
       {"<f2"},
       2,
       [](const char* bytes) { return half_to_float(load_as<uint16_t>(bytes)); },
       [](float value, char* bytes) { store_as(float_to_half(value), bytes); }},
      {"f8",
       {"<f8"},
       8,
       [](const char* bytes) { return static_cast<float>(load_as<double>(bytes)); },
       [](float value, char* bytes) { store_as(double{value}, bytes); }},
      {"bf16",
       {"|V2", "<V2"},
       2,
       [](const char* bytes) { return to_float(bf16_from_bits(load_as<uint16_t>(bytes))); },
       [](float value, char* bytes) { store_as(bf16_bits(to_bf16(value)), bytes); }},
  };
  return all;
}

const Dtype& dtype_of_descr(const std::string& descr, bool uint16_is_bf16) {
  constexpr char kUint16[] = "<u2";
  std::vector<std::string> known;
  for (const Dtype& dtype : dtypes())
    for (const std::string& candidate : dtype.descrs) {
      if (candidate == descr || (uint16_is_bf16 && descr == kUint16 && dtype.name == "bf16")) return dtype;
      known.push_back(candidate);
    }
  if (descr == kUint16)
    throw std::invalid_argument(
        "its elements are whole numbers, uint16 ('<u2'); if they are the bits of bf16, say --bf16-as-uint16");
  throw std::invalid_argument("its elements are '" + descr + "'; must be one of " + join(known, ", "));
}

std::string read_bytes(std::istream& file, size_t count, const char* what) {
  std::string bytes(count, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(count));
  if (static_cast<size_t>(file.gcount()) != count)
    throw std::invalid_argument(std::string("cut short in its ") + what);
  return bytes;
}

/// The header: the text of a Python dictionary.
struct Header {
  std::string descr;  ///< the type of the elements, for example "<f4"
  bool fortran_order = false;
  std::vector<uint64_t> shape;
};

/// Reads the few kinds of Python literal that occur in a header, from left to right.
class HeaderParser {
 public:
  explicit HeaderParser(const std::string& text) : text_(text) {}

  /// True, and past it, if `token` comes next.
  bool accept(const std::string& token) {
    skip_blanks();
    if (text_.compare(position_, token.size(), token) != 0) return false;
    position_ += token.size();
    return true;
  }

  void expect(const std::string& token) {
    if (!accept(token)) throw std::invalid_argument("malformed header: expected " + token + " " + where());
  }

  std::string string() {
    skip_blanks();
    const char quote = position_ < text_.size() ? text_[position_] : '\0';
    const size_t end = quote == '\'' || quote == '"' ? text_.find(quote, position_ + 1) : std::string::npos;
    if (end == std::string::npos)
      throw std::invalid_argument("malformed header: expected a string " + where());
    const std::string result = text_.substr(position_ + 1, end - position_ - 1);
    position_ = end + 1;
    return result;
  }

  bool boolean() {
    if (accept("True")) return true;
    if (accept("False")) return false;
    throw std::invalid_argument("malformed header: expected True or False " + where());
  }

  std::vector<uint64_t> tuple() {
    std::vector<uint64_t> numbers;
    expect("(");
    while (!accept(")")) {
      numbers.push_back(number(numbers.size()));
      if (accept(",")) continue;
      expect(")");
      break;
    }
    return numbers;
  }

  bool at_end() {
    skip_blanks();
    return position_ == text_.size();
  }

 private:
  void skip_blanks() {
    while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\n')) ++position_;
  }

  /// @param axis for what is said of it
  uint64_t number(size_t axis) {
    skip_blanks();
    const size_t begin = position_;
    const bool is_negative = position_ < text_.size() && text_[position_] == '-';
    position_ += is_negative;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9') ++position_;
    if (is_negative)
      throw std::invalid_argument("malformed header: axis " + std::to_string(axis) + " has the size " +
                                  text_.substr(begin, position_ - begin) + "; it must be 0 or more");
    return parse_number("malformed header: size", text_.substr(begin, position_ - begin), 0, UINT64_MAX);
  }

  std::string where() const { return "at character " + std::to_string(position_); }

  const std::string& text_;
  size_t position_ = 0;
};

/// Parses "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }".
/// @throws std::invalid_argument saying what is not as expected
Header parse_header(const std::string& text) {
  Header header;
  std::set<std::string> seen;
  HeaderParser parser(text);
  parser.expect("{");
  while (!parser.accept("}")) {
    const std::string key = parser.string();
    parser.expect(":");
    if (!seen.insert(key).second) throw std::invalid_argument("malformed header: '" + key + "' occurs twice");
    if (key == "descr") {
      header.descr = parser.string();
    } else if (key == "fortran_order") {
      header.fortran_order = parser.boolean();
    } else if (key == "shape") {
      header.shape = parser.tuple();
    } else {
      throw std::invalid_argument("malformed header: unknown key '" + key + "'");
    }
    if (parser.accept(",")) continue;
    parser.expect("}");
    break;
  }
  if (seen.size() != 3)
    throw std::invalid_argument("malformed header: descr, fortran_order or shape is missing");
  if (!parser.at_end()) throw std::invalid_argument("malformed header: text after the dictionary");
  return header;
}

Header read_header(std::istream& file) {
  const std::string start = read_bytes(file, kMagicBytes + 2, "header");
  if (start.compare(0, kMagicBytes, kMagic) != 0) throw std::invalid_argument("not an .npy file");
  const int major = start[kMagicBytes], minor = start[kMagicBytes + 1];
  if (major < 1 || major > 3 || minor != 0)
    throw std::invalid_argument(
        fmt::format("its format is version {}.{}; must be 1.0, 2.0 or 3.0", major, minor));
  const size_t length = major == 1 ? load_as<uint16_t>(read_bytes(file, 2, "header").data())
                                   : load_as<uint32_t>(read_bytes(file, 4, "header").data());
  constexpr size_t kLongestHeader = 1 << 20;
  if (length > kLongestHeader) throw std::invalid_argument("malformed header: longer than 1 MiB");
  return parse_header(read_bytes(file, length, "header"));
}

NpyMatrix read_matrix(std::istream& file, bool uint16_is_bf16) {
  const Header header = read_header(file);
  const Dtype& dtype = dtype_of_descr(header.descr, uint16_is_bf16);
  if (header.shape.size() != 2)
    throw std::invalid_argument(fmt::format("it has {} dimensions; must have 2", header.shape.size()));
  NpyMatrix matrix;
  matrix.rows = header.shape[0];
  matrix.columns = header.shape[1];
  constexpr uint64_t kMaxElements = std::numeric_limits<int32_t>::max();
  if (matrix.columns != 0 && matrix.rows > kMaxElements / matrix.columns)
    throw std::invalid_argument(fmt::format("it is {} x {}; a matrix must have fewer than 2^31 elements",
                                            matrix.rows, matrix.columns));

  // The length is checked before the memory is asked for: a header can promise anything.
  const size_t count = matrix.rows * matrix.columns;
  const std::streamoff begin = file.tellg();
  file.seekg(0, std::ios::end);
  const size_t available = static_cast<size_t>(file.tellg() - begin);
  file.seekg(begin);
  if (available < count * dtype.bytes) throw std::invalid_argument("cut short in its data");
  if (available > count * dtype.bytes) throw std::invalid_argument("longer than its header says");
  const std::string bytes = read_bytes(file, count * dtype.bytes, "data");

  matrix.values.resize(count);
  for (size_t row = 0; row < matrix.rows; ++row)
    for (size_t column = 0; column < matrix.columns; ++column) {
      const size_t stored = header.fortran_order ? column * matrix.rows + row : row * matrix.columns + column;
      matrix.values[row * matrix.columns + column] = dtype.load(&bytes[stored * dtype.bytes]);
    }
  return matrix;
}

}  // namespace

NpyMatrix read_npy(const std::string& argument, const std::string& path, bool uint16_is_bf16) {
  try {
    if (std::filesystem::is_directory(path)) throw std::invalid_argument("is a folder; must be an .npy file");
    std::ifstream file(path, std::ios::binary);
    if (!file || file.peek() == std::ifstream::traits_type::eof())
      throw std::invalid_argument(file ? "is empty" : std::string("cannot be read: ") + std::strerror(errno));
    return read_matrix(file, uint16_is_bf16);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(argument + " '" + path + "': " + error.what());
  }
}

const std::vector<std::string>& npy_dtypes() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Dtype& dtype : dtypes()) all.push_back(dtype.name);
    return all;
  }();
  return names;
}

void write_npy(const std::string& argument, const std::string& path, const NpyMatrix& matrix,
               const std::string& name) {
  const Dtype* dtype = nullptr;
  for (const Dtype& candidate : dtypes())
    if (candidate.name == name) dtype = &candidate;
  if (!dtype)
    throw std::invalid_argument("--dtype '" + name + "': must be one of " + join(npy_dtypes(), ", "));

  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                   dtype->descrs.front(), matrix.rows, matrix.columns);
  // Blanks and a line break up to a multiple of 64, so that the data are aligned.
  constexpr size_t kAlignment = 64, kBeforeHeader = kMagicBytes + 4;
  header.resize((kBeforeHeader + header.size()) / kAlignment * kAlignment + kAlignment - kBeforeHeader - 1,
                ' ');
  header += '\n';
  char length[2];
  store_as(static_cast<uint16_t>(header.size()), length);

  std::string bytes(matrix.values.size() * dtype->bytes, '\0');
  for (size_t i = 0; i < matrix.values.size(); ++i) dtype->store(matrix.values[i], &bytes[i * dtype->bytes]);
  write_file_atomically(argument, path, [&](std::ostream& file) {
    file.write(kMagic, kMagicBytes).write("\x01\x00", 2).write(length, 2) << header << bytes;
  });
}

}  // namespace ladder
