/// @file
/// A table that is printed row by row.
#include "common/host/base/table.hpp"

#include <algorithm>

namespace ladder {

Table::Table(std::ostream& out, std::vector<Column> columns) : out_(out), columns_(std::move(columns)) {
  for (Column& column : columns_)
    column.width = std::max(column.width, static_cast<int>(column.title.size()));
}

void Table::header() {
  std::vector<std::string> titles, lines;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    lines.emplace_back(column.width, '-');
  }
  row(titles);
  row(lines);
}

void Table::row(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const std::string& cell = cells.at(i);
    const size_t width = static_cast<size_t>(columns_[i].width);
    const std::string padding(cell.size() < width ? width - cell.size() : 0, ' ');
    if (i > 0) line += "  ";
    line += columns_[i].right ? padding + cell : cell + padding;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out_ << line << std::endl;
}

}  // namespace ladder
