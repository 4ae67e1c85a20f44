/// @file
/// The check of one stage of the capstone, STAGE.
namespace mine {}  // namespace mine
#include EXERCISE

#include "05_ws_double_buffer/exercise/capstone/judge.hpp"
#include "common/exercise/check.hpp"

int main(int argc, char** argv) {
  return ladder::exercise::run_check(
      argc, argv, [] { capstone::judge(STAGE, mine::launch_gemm); }, ladder::kHopper);
}
