/// @file
/// The list of all parts.
#include "common/parts/groups.hpp"

namespace ladder {

std::vector<PartGroup> all_parts() {
  return {
      {"load", "TMA brings boxes of 64 columns to shared memory", parts::measure_loads},
      {"hand-over", "Barriers", parts::measure_hand_overs},
      {"product", "A product of 64 in k by wgmma, for each step", parts::measure_products},
      {"epilogue", "A tile of sums goes to memory: stmatrix, staging, TMA store", parts::measure_epilogues},
      {"exchange", "Blocks of a cluster send each other sums", parts::measure_exchanges},
      {"copy", "256 threads copy tiles to shared memory, without TMA", parts::measure_copies},
      {"pace", "Loads and copies, by how often they come",
       [](const parts::AddRow& add) {
         parts::measure_loads_at_pace(add);
         parts::measure_copies_at_pace(add);
       }},
      {"pieces", "A tile of sums goes to memory, whole or in two pieces", parts::measure_pieces},
      {"burst", "Products in bursts, and the clock of the multiprocessors", parts::measure_bursts},
      {"path", "Copies by threads and products, which share the way to shared memory",
       parts::measure_shared_path},
      // The last, because it leaves a low clock behind.
      {"clock", "Loads at the clock of an idle GPU, and behind products", parts::measure_clocks}};
}

}  // namespace ladder
