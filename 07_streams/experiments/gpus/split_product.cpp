/// @file
/// Runs a product that is split over GPUs, with or without overlap.
#include "07_streams/experiments/gpus/split_product.hpp"

#include <fmt/core.h>
#include <stdexcept>
#include <string>

#include "07_streams/best_kernel.hpp"
#include "07_streams/drain.hpp"
#include "07_streams/experiments/devices.hpp"
#include "common/host/problem/fill.hpp"

namespace lesson07 {

SplitProduct::SplitProduct(const ladder::Shape& shape, int devices) : shape_(shape), parts_(devices) {
  if (shape.k % (8 * devices) != 0)
    throw std::invalid_argument(fmt::format("--shape {}: k = {} must be a multiple of 8 on each of {} GPUs",
                                            shape.name(), shape.k, devices));
  for (int device = 0; device < devices; ++device) {
    const OnDevice current(device);
    Part& part = parts_[device];
    for (auto& a : part.a) a = ladder::DeviceBuffer<bf16>(size_t(shape.m) * k_of_part());
    for (auto& c : part.c) c = ladder::DeviceBuffer<bf16>(size_t(shape.m) * shape.n);
    part.b = ladder::DeviceBuffer<bf16>(size_t(k_of_part()) * shape.n);
    part.products = ladder::make_stream();
    part.all_reduces = make_urgent_stream();
    for (int slot = 0; slot < kSlots; ++slot) {
      part.multiplied[slot] = ladder::make_order_event();
      part.reduced[slot] = ladder::make_order_event();
    }
  }
}

SplitProduct::~SplitProduct() {
  for (const Part& part : parts_) {
    drain(part.products.get());
    drain(part.all_reduces.get());
  }
}

void SplitProduct::fill_exactly(uint64_t seed) {
  for (size_t device = 0; device < parts_.size(); ++device) {
    const OnDevice current(static_cast<int>(device));
    Part& part = parts_[device];
    // Each input of each device has a range of its own in one endless list.
    for (size_t input = 0; input < kInputs; ++input)
      part.a[input].upload(sparse_integers(seed, (input * parts_.size() + device) * part.a[input].size(),
                                           part.a[input].size()));
    ladder::fill(part.b.data(), part.b.size(), exact_weights(seed + 1 + device));
    CUDA_CHECK(cudaDeviceSynchronize());  // non-blocking streams do not wait for the legacy one
  }
}

void SplitProduct::fill_normally(uint64_t seed) {
  for (size_t device = 0; device < parts_.size(); ++device) {
    const OnDevice current(static_cast<int>(device));
    Part& part = parts_[device];
    for (auto& a : part.a) ladder::fill(a.data(), a.size(), ladder::NormalValues{seed++});
    ladder::fill(part.b.data(), part.b.size(), ladder::NormalValues{seed++});
    CUDA_CHECK(cudaDeviceSynchronize());
  }
}

void SplitProduct::multiply(Part& part, int batch, const SplitSchedule& schedule) const {
  const Kernel kernel = best_kernel({{"spare_sms", std::to_string(schedule.spare_sms)}});
  const int slot = batch % kSlots;
  // The sum that was in this slot is still being made, or read by whoever samples it.
  if (batch >= kSlots && schedule.waits_until_reduced)
    CUDA_CHECK(cudaStreamWaitEvent(part.products.get(), part.reduced[slot].get()));
  kernel.launch(
      {part.a[batch % kInputs].data(), part.b.data(), part.c[slot].data(), shape_.m, shape_.n, k_of_part()},
      part.products.get());
  CUDA_CHECK(cudaEventRecord(part.multiplied[slot].get(), part.products.get()));
}

void SplitProduct::run(int batches, const SplitSchedule& schedule, Communicators& communicators,
                       const std::vector<SampledRows*>& sampled) {
  std::vector<cudaStream_t> streams;  // of the all-reduces
  for (const Part& part : parts_)
    streams.push_back(schedule.overlaps ? part.all_reduces.get() : part.products.get());

  for (int batch = 0; batch < batches; ++batch) {
    const int slot = batch % kSlots;
    std::vector<bf16*> sums;
    for (size_t device = 0; device < parts_.size(); ++device) {
      const OnDevice current(static_cast<int>(device));
      Part& part = parts_[device];
      if (schedule.multiplies) {
        multiply(part, batch, schedule);
        if (schedule.waits_until_multiplied)
          CUDA_CHECK(cudaStreamWaitEvent(streams[device], part.multiplied[slot].get()));
      }
      sums.push_back(part.c[slot].data());
    }
    if (schedule.reduces) communicators.all_reduce(sums, size_t(shape_.m) * shape_.n, streams);
    for (size_t device = 0; device < parts_.size(); ++device) {
      const OnDevice current(static_cast<int>(device));
      if (!sampled.empty()) sampled[device]->take(batch, sums[device], streams[device]);
      CUDA_CHECK(cudaEventRecord(parts_[device].reduced[slot].get(), streams[device]));
    }
  }
  std::vector<cudaStream_t> all;
  for (const Part& part : parts_) all.insert(all.end(), {part.products.get(), part.all_reduces.get()});
  communicators.wait(all, std::chrono::seconds(10 + batches));
}

std::vector<float> SplitProduct::expected_rows(uint64_t seed, int batch, const std::vector<int>& rows) const {
  const int k = k_of_part();
  std::vector<float> sum(rows.size() * shape_.n);
  for (size_t device = 0; device < parts_.size(); ++device) {
    const uint64_t first = (batch % kInputs * parts_.size() + device) * shape_.m * k;
    std::vector<float> a;
    for (const int row : rows)
      for (int step = 0; step < k; ++step)
        a.push_back(SparseIntegers{seed}(first + uint64_t(row) * k + step));
    const std::vector<float> part = multiply_exactly(a, exact_weights(seed + 1 + device), k, shape_.n);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
  }
  return sum;
}

}  // namespace lesson07
