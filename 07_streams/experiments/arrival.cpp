/// @file
/// Experiment `arrival`: has the data arrived when cudaMemcpy returns?
///
/// From pageable memory cudaMemcpy returns when the data lies in a staging buffer of the driver. Its copy to
/// the device belongs to the legacy default stream, for which a stream made with cudaStreamNonBlocking does
/// not wait. Such a stream copies the memory back at once here, and the host looks whether it got what was
/// there before.
#include <fmt/core.h>
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "07_streams/experiments/support.hpp"
#include "07_streams/pinned_ring.hpp"
#include "common/host/base/table.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {
namespace {

using Upload = void (*)(void* to, const void* from, size_t bytes);

void by_cuda_memcpy(void* to, const void* from, size_t bytes) {
  CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}

constexpr std::pair<const char*, Upload> kUploads[] = {{"cudaMemcpy", by_cuda_memcpy},
                                                       {"copy_to_device", ladder::copy_to_device}};

/// Uploads of one size, each of other bytes than the one before.
class Uploads {
 public:
  Uploads(size_t bytes, int times)
      : times_(times), pageable_(bytes), read_back_(bytes), device_(bytes), stream_(ladder::make_stream()) {}

  void run(Upload upload) {
    for (int i = 0; i < times_; ++i) {
      std::memset(pageable_.data(), ++value_, pageable_.size());
      upload(device_.data(), pageable_.data(), pageable_.size());
      CUDA_CHECK(cudaMemcpyAsync(read_back_.data(), device_.data(), pageable_.size(), cudaMemcpyDeviceToHost,
                                 stream_.get()));
      CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
      early_ += std::memcmp(read_back_.data(), pageable_.data(), pageable_.size()) != 0;
      ++all_;
      CUDA_CHECK(cudaDeviceSynchronize());  // what is late has arrived before the next one
    }
  }
  /// How many were read too early, so far.
  std::string early() const { return fmt::format("{} of {}", early_, all_); }

 private:
  int times_, early_ = 0, all_ = 0;
  unsigned char value_ = 0;
  std::vector<unsigned char> pageable_;
  PinnedBuffer<unsigned char> read_back_;
  ladder::DeviceBuffer<unsigned char> device_;
  ladder::Stream stream_;
};

/// The CPU device names the first upload whose arrival nothing orders, whatever was read.
bool is_named(const Variant& variant) {
  if (!ladder::on_cpu_device()) return false;
  try {
    variant.run();
  } catch (const std::runtime_error& error) {
    if (!std::strstr(error.what(), "nothing orders them")) throw;
    return true;
  }
  return false;
}

void run_arrival(const Context& context) {
  const std::vector<size_t> sizes =
      ladder::on_cpu_device() ? std::vector<size_t>{64, 64 << 10}
                              : std::vector<size_t>{64,        4 << 10, 32 << 10, 64 << 10, (64 << 10) + 1,
                                                    256 << 10, 1 << 20, 16 << 20};
  constexpr size_t kBytesOfRound = size_t{300} << 20;
  std::vector<std::pair<Variant, std::shared_ptr<Uploads>>> all;
  std::vector<Variant> variants;
  for (const auto& [how, upload] : kUploads)
    for (const size_t bytes : sizes) {
      const int times =
          ladder::on_cpu_device() ? 3 : static_cast<int>(std::clamp<size_t>(kBytesOfRound / bytes, 20, 1000));
      const auto uploads = std::make_shared<Uploads>(bytes, times);
      const Variant variant = {how,
                               {{"how", how}, {"bytes", std::to_string(bytes)}},
                               [uploads, upload = upload] { uploads->run(upload); }};
      all.emplace_back(variant, uploads);
      if (!is_named(variant)) variants.push_back(variant);
    }
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(context.out, {{"upload by", 14, false}, {"bytes", 9}, {"read too early", 24}});
  table.header();
  size_t next = 0;
  for (auto& [variant, uploads] : all) {
    const bool was_measured = next < variants.size() && variants[next].settings == variant.settings;
    const std::string early = was_measured ? uploads->early() : "named by the CPU device";
    table.row({variant.label, variant.settings.at("bytes"), early});
    if (!was_measured) continue;
    variant.settings["early"] = early;
    add_result(context, "arrival", variant, {}, measured[next++]);
  }
}

}  // namespace

const Experiment& arrival_experiment() {
  static const Experiment experiment = {
      "arrival", "Has the data arrived when cudaMemcpy from pageable memory returns?", run_arrival};
  return experiment;
}

}  // namespace lesson07
