/// @file
/// Copies alone, and kernels alone.
#include "07_streams/measure/bound.hpp"

#include <algorithm>

#include "common/host/base/statistics.hpp"

namespace lesson07 {

double Bound::us() const { return std::max({upload_us, compute_us, download_us}); }

std::string Bound::engine() const {
  if (us() == compute_us) return "compute";
  return us() == upload_us ? "upload" : "download";
}

CopiesAlone::CopiesAlone(const Batches& batches, Pipeline& pipeline)
    : batches_(batches),
      pipeline_(pipeline),
      a_(size_t(batches.most_rows()) * batches.k),
      c_(size_t(batches.most_rows()) * batches.n),
      begin_(ladder::make_event()),
      upload_end_(ladder::make_event()),
      download_end_(ladder::make_event()),
      up_(make_drained_stream()),
      down_(make_drained_stream()) {}

void CopiesAlone::run() {
  const PinnedRing<bf16>::Slot from = pipeline_.uploads.acquire(pipeline_.limit);
  const PinnedRing<bf16>::Slot to = pipeline_.downloads.acquire(pipeline_.limit);
  CUDA_CHECK(cudaEventRecord(begin_.get(), up_.get()));
  CUDA_CHECK(cudaStreamWaitEvent(down_.get(), begin_.get()));
  // In turns, so that both directions are busy from the first copy on.
  for (int b = 0; b < batches_.count(); ++b) {
    CUDA_CHECK(cudaMemcpyAsync(a_.data(), from.data(), batches_.a_elements(b) * sizeof(bf16),
                               cudaMemcpyHostToDevice, up_.get()));
    CUDA_CHECK(cudaMemcpyAsync(to.data(), c_.data(), batches_.c_elements(b) * sizeof(bf16),
                               cudaMemcpyDeviceToHost, down_.get()));
  }
  CUDA_CHECK(cudaEventRecord(upload_end_.get(), up_.get()));
  CUDA_CHECK(cudaEventRecord(download_end_.get(), down_.get()));
  upload_samples_.push_back(1e3 * ladder::elapsed_ms(begin_, upload_end_));
  download_samples_.push_back(1e3 * ladder::elapsed_ms(begin_, download_end_));
}

double CopiesAlone::upload_us() const { return ladder::quartiles(upload_samples_).median; }
double CopiesAlone::download_us() const { return ladder::quartiles(download_samples_).median; }

KernelsAlone::KernelsAlone(const Batches& batches, const Weights& weights, Pipeline& pipeline)
    : batches_(batches),
      weights_(weights),
      a_(size_t(batches.most_rows()) * batches.k),
      c_(size_t(batches.most_rows()) * batches.n),
      stream_(make_drained_stream()) {
  const PinnedRing<bf16>::Slot from = pipeline.uploads.acquire(pipeline.limit);
  CUDA_CHECK(cudaMemcpyAsync(a_.data(), from.data(), a_.size() * sizeof(bf16), cudaMemcpyHostToDevice,
                             stream_.get()));
  CUDA_CHECK(cudaStreamWaitEvent(stream_.get(), weights.ready()));
  CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
}

void KernelsAlone::run(const Kernel& kernel) {
  for (const int rows : batches_.rows)
    kernel.launch({a_.data(), weights_.data(), c_.data(), rows, batches_.n, batches_.k}, stream_.get());
  CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
}

}  // namespace lesson07
