/// @file
/// The check of exercise 06.a: clusters of several shapes, of up to eight blocks.
#include EXERCISE

#include "common/exercise/check.hpp"
#include "common/exercise/prediction.hpp"

namespace {

using ladder::exercise::expect_returned;

void check() {
  for (const auto& [rows, columns] : {std::pair{2, 4}, {4, 2}, {2, 2}, {1, 2}, {2, 1}, {1, 8}, {8, 1}})
    for (int rank = 0; rank < rows * columns; ++rank) {
      int of_a = 0, of_b = 0;
      for (int other = 0; other < rows * columns; ++other) {
        if (other / columns == rank / columns) of_a |= 1 << other;
        if (other % columns == rank % columns) of_b |= 1 << other;
      }
      const int all = (1 << rows * columns) - 1;
      const std::string arguments = fmt::format("({}, {}, {})", rank, rows, columns);
      const std::string whole = "that is the whole cluster", self = "the block itself receives it, too",
                        other = "these blocks share the other tile";
      expect_returned(
          "receivers_of_a" + arguments, exercise::receivers_of_a(rank, rows, columns), of_a,
          {{of_b, other}, {all, whole}, {of_a & ~(1 << rank), self}, {(1 << columns) - 1, "that is row 0"}});
      expect_returned("receivers_of_b" + arguments, exercise::receivers_of_b(rank, rows, columns), of_b,
                      {{of_a, other}, {all, whole}, {of_b & ~(1 << rank), self}});
    }
}

}  // namespace

int main(int argc, char** argv) { return ladder::exercise::run_check(argc, argv, check, 0); }
