/// @file
/// Cleaning up after an error that is already being reported: what fails now is not reported.
#pragma once
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "common/cuda/cuda_handles.hpp"
#include "common/host/base/exit_codes.hpp"

namespace lesson07 {

/// Calls `clean_up`, also from a destructor. The CPU device reports broken rules by exceptions.
template <class CleanUp>
void quietly(const CleanUp& clean_up) {
  try {
    clean_up();
  } catch (...) {
  }
}

/// How long cleaning up waits for the device: at first in silence, then with a word of why.
struct Patience {
  std::chrono::milliseconds silent{1'000}, in_all{10'000};
};

/// Asks `query` until it returns anything but cudaErrorNotReady. If that takes long, says on stderr what was
/// wrong, because nobody else will: a kernel that hangs cannot be stopped, and every call that cleans up
/// would wait for it. At the end of its patience it ends the program, with kExitFailure.
/// @returns what `query` has returned
template <class Query>
cudaError_t wait_or_exit(const Query& query, const std::string& what_was_wrong, const Patience& patience) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ms = [](std::chrono::milliseconds time) { return std::to_string(time.count()) + " ms"; };
  bool has_spoken = false;
  while (true) {
    const cudaError_t state = query();
    if (state != cudaErrorNotReady) return state;
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (!has_spoken && waited >= patience.silent) {
      std::cout.flush();
      std::cerr << "07_streams: error: " << what_was_wrong
                << "\n07_streams: the device is still at work; waiting " << ms(patience.in_all) << " for it"
                << std::endl;
      has_spoken = true;
    }
    if (waited >= patience.in_all) {
      std::cerr << "07_streams: the device has not ended in " << ms(patience.in_all)
                << ": a kernel or a host function hangs. The program ends, and gives nothing back"
                << std::endl;
      std::fflush(nullptr);
      std::_Exit(ladder::kExitFailure);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

/// Waits until nothing of the stream is in flight, and forgets what failed. Ends the program if that takes
/// too long.
/// @param what_was_wrong why this is cleaned up
/// @returns what failed
inline cudaError_t drain(cudaStream_t stream, const std::string& what_was_wrong = "a stream does not end",
                         const Patience& patience = {}) {
  cudaError_t error = cudaSuccess;
  quietly([&] { error = wait_or_exit([&] { return cudaStreamQuery(stream); }, what_was_wrong, patience); });
  cudaGetLastError();
  return error;
}

/// A stream whose work has ended when it goes. Declared after the buffers that this work uses, it goes
/// before them.
struct DrainAndDestroy {
  void operator()(cudaStream_t stream) const {
    drain(stream);
    cudaStreamDestroy(stream);
  }
};
using DrainedStream = std::unique_ptr<CUstream_st, DrainAndDestroy>;
inline DrainedStream make_drained_stream() { return DrainedStream(ladder::make_stream().release()); }

}  // namespace lesson07
