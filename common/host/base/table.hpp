/// @file
/// A table that is printed row by row, as its rows become known.
#pragma once
#include <ostream>
#include <string>
#include <vector>

namespace ladder {

struct Column {
  std::string title;
  int width;
  bool right = true;  ///< numbers stand on the right, words on the left
};

class Table {
 public:
  /// A column is at least as wide as its title. All columns and the two blanks between them should fit into
  /// 100 characters.
  Table(std::ostream& out, std::vector<Column> columns);

  /// Prints the titles of the columns, and a line below them.
  void header();
  /// Flushes, so that a row is seen when it is known. A cell that is too wide pushes the others to the right.
  void row(const std::vector<std::string>& cells);

 private:
  std::ostream& out_;
  std::vector<Column> columns_;
};

}  // namespace ladder
