/// @file
/// The matrices that are multiplied while a timeline is recorded.
#include "common/host/timeline/recording.hpp"

#include "common/host/problem/fill.hpp"

namespace ladder {

TraceInputs::TraceInputs(const Shape& shape)
    : shape_(shape),
      a_(size_t(shape.m) * shape.k),
      b_(size_t(shape.k) * shape.n * shape.b_matrices),
      c_(size_t(shape.m) * shape.n),
      bias_(shape.n) {
  fill(a_.data(), a_.size(), NormalValues{2});
  fill(b_.data(), b_.size(), NormalValues{3});
  fill(bias_.data(), bias_.size(), NormalValues{4});
}

}  // namespace ladder
