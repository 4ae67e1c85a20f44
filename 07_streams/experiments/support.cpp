/// @file
/// Implementation of what the experiments share.
#include "07_streams/experiments/support.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>
#include <utility>

#include "07_streams/best_kernel.hpp"
#include "07_streams/drain.hpp"
#include "common/cuda/error.hpp"
#include "common/host/base/parallel.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/problem/fill.hpp"
#include "common/host/verify/verifier.hpp"

namespace lesson07 {

using bf16 = __nv_bfloat16;

std::string name_of(HostMemory memory) {
  switch (memory) {
    case HostMemory::pageable:
      return "pageable";
    case HostMemory::registered:
      return "registered";
    default:
      return "pinned";
  }
}

HostArray::HostArray(size_t size, HostMemory memory) : size_(size), memory_(memory) {
  if (memory == HostMemory::pinned) {
    CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data_), bytes()));
  } else {
    data_ = static_cast<bf16*>(std::malloc(bytes()));
    if (!data_) throw std::bad_alloc();
    if (memory == HostMemory::registered)
      if (const cudaError_t result = cudaHostRegister(data_, bytes(), cudaHostRegisterDefault)) {
        std::free(data_);
        CUDA_CHECK(result);
      }
  }
  // Every page is touched: the system gives a page of pageable memory when it is first written.
  std::fill_n(data_, size_, bf16{});
}

HostArray::HostArray(HostArray&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(other.size_), memory_(other.memory_) {}

HostArray::~HostArray() {
  if (!data_) return;
  if (memory_ == HostMemory::pinned) quietly([&] { cudaFreeHost(data_); });
  if (memory_ == HostMemory::registered) quietly([&] { cudaHostUnregister(data_); });
  if (memory_ != HostMemory::pinned) std::free(data_);
}

RandomWeights::RandomWeights(int k, int n, uint64_t seed)
    : k(k), n(n), values{seed, ladder::integer_magnitude(k)}, b(static_cast<size_t>(k) * n) {
  ladder::fill(b.data(), b.size(), values);
  // Filled through the legacy default stream, for which non-blocking streams do not wait.
  CUDA_CHECK(cudaDeviceSynchronize());
}

void multiply(const RandomWeights& weights, const bf16* a, bf16* c, int rows, cudaStream_t stream) {
  // The CPU device measures no time, so it takes the kernel that it emulates fastest.
  static const Kernel kernel = ladder::on_cpu_device() ? kernel_of("02") : best_kernel();
  kernel.launch({.a = a, .b = weights.b.data(), .c = c, .m = rows, .n = weights.n, .k = weights.k}, stream);
}

BatchSlot::BatchSlot(const RandomWeights& weights, int rows, HostMemory memory, uint64_t seed)
    : weights_(&weights),
      rows_(rows),
      host_a_(static_cast<size_t>(rows) * weights.k, memory),
      host_c_(static_cast<size_t>(rows) * weights.n, memory),
      a_(host_a_.size()),
      c_(host_c_.size()) {
  const ladder::IntegerValues values{seed, ladder::integer_magnitude(weights.k)};
  ladder::parallel_for(static_cast<int64_t>(host_a_.size()), 1 << 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) host_a_.data()[i] = values(static_cast<uint64_t>(i));
  });
  // So that every step can also run alone.
  CUDA_CHECK(cudaMemcpy(a_.data(), host_a_.data(), host_a_.bytes(), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemset(c_.data(), 0, host_c_.bytes()));
  CUDA_CHECK(cudaDeviceSynchronize());
}

void BatchSlot::upload(cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(a_.data(), host_a_.data(), host_a_.bytes(), cudaMemcpyHostToDevice, stream));
}

void BatchSlot::multiply(cudaStream_t stream) {
  lesson07::multiply(*weights_, a_.data(), c_.data(), rows_, stream);
}

void BatchSlot::download(cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(host_c_.data(), c_.data(), host_c_.bytes(), cudaMemcpyDeviceToHost, stream));
}

void BatchSlot::run_in(bf16* a, bf16* c, cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(a, host_a_.data(), host_a_.bytes(), cudaMemcpyHostToDevice, stream));
  lesson07::multiply(*weights_, a, c, rows_, stream);
  CUDA_CHECK(cudaMemcpyAsync(host_c_.data(), c, host_c_.bytes(), cudaMemcpyDeviceToHost, stream));
}

std::vector<BatchSlot> make_slots(const RandomWeights& weights, int rows, int count, HostMemory memory) {
  std::vector<BatchSlot> slots;
  for (int i = 0; i < count; ++i) slots.emplace_back(weights, rows, memory, 2 + static_cast<uint64_t>(i));
  return slots;
}

std::vector<ladder::Stream> make_streams(int count) {
  std::vector<ladder::Stream> streams;
  for (int i = 0; i < count; ++i) streams.push_back(ladder::make_stream());
  return streams;
}

void wait_for(const std::vector<ladder::Stream>& streams) {
  for (const ladder::Stream& stream : streams) CUDA_CHECK(cudaStreamSynchronize(stream.get()));
}

void run_round_robin(std::vector<BatchSlot>& slots, const std::vector<ladder::Stream>& streams, int batches) {
  for (int batch = 0; batch < batches; ++batch) {
    const size_t turn = static_cast<size_t>(batch) % streams.size();
    slots.at(turn).run(streams[turn].get());
  }
  wait_for(streams);
}

void order(cudaStream_t before, cudaStream_t after, const ladder::Event& event) {
  CUDA_CHECK(cudaEventRecord(event.get(), before));
  CUDA_CHECK(cudaStreamWaitEvent(after, event.get(), 0));
}

int announced_batches(const Context& context) {
  constexpr int kEnough = 40;
  const int batches = std::min(context.batches, kEnough);
  context.out << batches << " batches of " << context.shape.name() << " (M x N x K)\n";
  return batches;
}

double host_us(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

std::string host_time_text(double us) { return ladder::on_cpu_device() ? "-" : us_text(us); }

std::string us_text(double us) { return ladder::fixed(us, us < 100 ? 1 : 0); }

std::string percent_text(double part, double whole) {
  return whole > 0 ? ladder::fixed(100 * part / whole, 0) + " %" : "-";
}

void add_result(const Context& context, const std::string& experiment, const Variant& variant,
                const ladder::Shape& shape, const Measured& measured, std::optional<double> bound_us,
                bool verified) {
  ladder::Run run = result_row(experiment, variant, shape, measured);
  run.bound_us = bound_us;
  if (verified) run.verified = true;
  context.results.runs.push_back(std::move(run));
}

}  // namespace lesson07
