/// @file
/// What TMA loads and stores have in common.
#pragma once
#include "common/cpu_device/kernel/engine_state.hpp"

namespace cpu_device {

/// The box that a thread wants to copy. Throws for a map that nobody encoded, and for a place in shared
/// memory where the box cannot lie. `what` is "TMA load" or "TMA store".
TmaBox make_box(Thread&, const void* map, const void* shared, int column, int row, const char* what,
                Location where);

/// Counts the box as one operation.
void count_box(Cluster&, const TmaBox&, bool load);
/// Counts what a multicast writes to the shared memory of `blocks` further blocks.
void count_copies_of_box(Cluster&, const TmaBox&, unsigned blocks);

}  // namespace cpu_device
