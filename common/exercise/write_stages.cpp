/// @file
/// Writes the files that the tests of a capstone compile: the reference of each stage, as `ladder learn`
/// shows it, and what is wrong, which is that reference with one text replaced.
///
///     write_stages <capstone> <folder>
///
/// makes <folder>/stage_3.cuh from <capstone>/stages.cuh, and stage_3_<name>.cuh from what the exercise.json
/// of that stage has under "wrong".
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "common/exercise/stages.hpp"
#include "common/host/base/json.hpp"

namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Leaves a file alone that holds the text already, so that nothing is compiled again.
void write(const fs::path& file, const std::string& text) {
  if (!fs::exists(file) || read(file) != text) std::ofstream(file) << text;
}

void write_stages(const fs::path& capstone, const fs::path& folder) {
  const std::string marked = read(capstone / "stages.cuh");
  for (const auto& entry : fs::directory_iterator(capstone)) {
    const fs::path description = entry.path() / "exercise.json";
    if (!fs::exists(description)) continue;
    const int number = std::stoi(entry.path().filename().string());
    const std::string stage = "stage_" + std::to_string(number), text = ladder::stage_text(marked, number);
    write(folder / (stage + ".cuh"), text);
    std::ifstream stream(description);
    const ladder::Json json = ladder::parse_json(stream);
    for (const auto& [name, wrong] : json.at("wrong").items()) try {
        write(folder / (stage + "_" + name + ".cuh"),
              ladder::replaced_once(text, wrong.at("replace"), wrong.at("by")));
      } catch (const std::exception& error) {
        throw std::runtime_error(description.string() + ": " + name + ": " + error.what());
      }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) throw std::invalid_argument("write_stages: needs two folders");
  write_stages(argv[1], argv[2]);
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << "\n";
  return 1;
}
