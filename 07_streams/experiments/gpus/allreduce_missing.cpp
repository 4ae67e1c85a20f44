/// @file
/// In a GPU build for which no NCCL was found: says so.
#include "07_streams/experiments/experiment.hpp"

namespace lesson07 {

const Experiment& allreduce_experiment() {
  static const Experiment experiment = {
      "allreduce", "What does it take to hide an all-reduce behind the next batch's product?",
      [](const Context& context) {
        context.out << "allreduce: this build found no NCCL (on Debian and Ubuntu the package libnccl-dev)"
                    << std::endl;
      }};
  return experiment;
}

}  // namespace lesson07
