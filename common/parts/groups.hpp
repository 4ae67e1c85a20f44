/// @file
/// The groups of parts: one function for each, in a file of its own.
#pragma once
#include <functional>

#include "common/parts/part.hpp"

namespace ladder::parts {

using AddRow = std::function<void(PartRow)>;

/// Queues products on all multiprocessors, for as long as a GPU needs to lower its clock to its power limit.
/// Returns at once: what is launched next finds the low clock.
void lower_the_clock();

void measure_loads(const AddRow& add);
void measure_hand_overs(const AddRow& add);
void measure_products(const AddRow& add);
void measure_epilogues(const AddRow& add);
void measure_exchanges(const AddRow& add);
void measure_copies(const AddRow& add);
void measure_loads_at_pace(const AddRow& add);
void measure_copies_at_pace(const AddRow& add);
void measure_pieces(const AddRow& add);
void measure_bursts(const AddRow& add);
void measure_shared_path(const AddRow& add);
void measure_clocks(const AddRow& add);

}  // namespace ladder::parts
