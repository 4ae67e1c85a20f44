/// @file
/// The list of all experiments, in the order of the page. Each is defined in a file of its name.
#include "07_streams/experiments/experiment.hpp"

namespace lesson07 {

const Experiment& pinned_experiment();
const Experiment& arrival_experiment();
const Experiment& streams_experiment();
const Experiment& chunk_experiment();
const Experiment& alloc_experiment();
const Experiment& stalls_experiment();
const Experiment& pinning_experiment();
const Experiment& scratch_experiment();
const Experiment& default_stream_experiment();
const Experiment& waits_experiment();
const Experiment& wake_up_experiment();
const Experiment& events_experiment();
const Experiment& sharing_experiment();
const Experiment& priority_experiment();
const Experiment& graph_experiment();
const Experiment& graph_update_experiment();
const Experiment& layers_experiment();
const Experiment& recycle_experiment();
const Experiment& small_copies_experiment();
const Experiment& overhead_experiment();
const Experiment& fragments_experiment();
const Experiment& peers_experiment();
const Experiment& allreduce_experiment();
const Experiment& engines_experiment();

std::vector<const Experiment*> experiments() {
  return {&pinned_experiment(),       &pinning_experiment(),   &arrival_experiment(),
          &streams_experiment(),      &chunk_experiment(),     &alloc_experiment(),
          &stalls_experiment(),       &scratch_experiment(),   &default_stream_experiment(),
          &waits_experiment(),        &wake_up_experiment(),   &events_experiment(),
          &sharing_experiment(),      &priority_experiment(),  &graph_experiment(),
          &graph_update_experiment(), &layers_experiment(),    &recycle_experiment(),
          &small_copies_experiment(), &overhead_experiment(),  &fragments_experiment(),
          &peers_experiment(),        &allreduce_experiment(), &engines_experiment()};
}

}  // namespace lesson07
