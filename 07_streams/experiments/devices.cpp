/// @file
/// Several GPUs in one process.
#include "07_streams/experiments/devices.hpp"

#include <cuda_runtime.h>

#include <set>
#include <utility>

#include "common/cuda/error.hpp"
#include "common/host/base/exit_codes.hpp"
#include "common/host/device/device.hpp"

namespace lesson07 {

OnDevice::OnDevice(int device) {
  CUDA_CHECK(cudaGetDevice(&before_));
  CUDA_CHECK(cudaSetDevice(device));
}

OnDevice::~OnDevice() { cudaSetDevice(before_); }

int count_devices() {
  int count = 0;
  CUDA_CHECK(cudaGetDeviceCount(&count));
  return count;
}

bool has_devices(const Context& context, const std::string& experiment, int needed) {
  const int found = count_devices();
  if (found < needed) {
    context.out << experiment << ": needs " << needed << " GPUs, found " << found;
    if (ladder::on_cpu_device()) context.out << "; LADDER_CPU_DEVICES=" << needed << " makes as many";
    context.out << std::endl;
    return false;
  }
  const std::string reason = ladder::why_not_together(ladder::all_gpus());
  if (!reason.empty()) throw ladder::BadInput(experiment + ": " + reason);
  return true;
}

bool enable_peer_access(int one, int other) {
  for (const auto& [device, peer] : {std::pair(one, other), std::pair(other, one)}) {
    int possible = 0;
    CUDA_CHECK(cudaDeviceCanAccessPeer(&possible, device, peer));
    if (!possible) return false;
    const OnDevice current(device);
    static std::set<std::pair<int, int>> enabled;  // CUDA takes a second time for an error.
    if (enabled.contains({device, peer})) continue;
    const cudaError_t result = cudaDeviceEnablePeerAccess(peer, 0);
    if (result == cudaErrorPeerAccessAlreadyEnabled)
      cudaGetLastError();  // By somebody else. Forget it: the next call succeeds.
    else
      CUDA_CHECK(result);
    enabled.emplace(device, peer);
  }
  return true;
}

ladder::Stream make_urgent_stream() {
  int least = 0, greatest = 0;
  CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
  return ladder::Stream(stream);
}

}  // namespace lesson07
