/// @file
/// All-reduces as operations of streams that begin together. It exists so that the host code of lesson 07's
/// experiments with several GPUs can be tested.
#include "common/cpu_device/declarations/nccl_api.hpp"

#include <fmt/core.h>
#include <map>
#include <utility>
#include <vector>

#include "common/cpu_device/api/host_calls.hpp"
#include "common/cpu_device/base/float16.hpp"
#include "common/cpu_device/streams/stream_model.hpp"

using namespace cpu_device;

namespace {

struct Call {
  const void* from;
  void* to;
  size_t count;
  ncclDataType_t type;
};

/// One all-reduce of all ranks.
struct AllReduce : StreamCollective {
  std::vector<Call> calls;  ///< by rank
};

/// What the ranks of a communicator share.
struct Clique {
  unsigned ranks = 0;
  bool aborted = false;
  std::map<uint64_t, std::shared_ptr<AllReduce>> unfinished;  ///< by number, until all ranks have called
};

struct PendingCall {
  Call call;
  ncclComm* rank;
  CUstream_st* stream;
};
thread_local int group_depth = 0;
thread_local ncclResult_t group_error = ncclSuccess;
thread_local std::vector<PendingCall> group;

}  // namespace

struct ncclComm {
  std::shared_ptr<Clique> clique;
  unsigned rank = 0;
  int device = 0;
  uint64_t calls = 0;
};

namespace {

size_t size_of(ncclDataType_t type) { return type == ncclFloat ? 4 : 2; }

template <class T, class ToFloat, class FromFloat>
void sum(const std::vector<Call>& calls, const ToFloat& to_float, const FromFloat& from_float) {
  const size_t count = calls.front().count;
  std::vector<T> result(count);
  for (size_t i = 0; i < count; ++i) {
    float total = 0;
    for (const Call& call : calls) total += to_float(static_cast<const T*>(call.from)[i]);
    result[i] = from_float(total);
  }
  for (const Call& call : calls) std::copy(result.begin(), result.end(), static_cast<T*>(call.to));
}

void perform(const AllReduce& all) {
  for (const Call& call : all.calls) {
    if (call.count != all.calls[0].count || call.type != all.calls[0].type) {
      fail(fmt::format("ncclAllReduce: rank 0 gives {} elements and another rank {}, or of another type",
                       all.calls[0].count, call.count));
    }
  }
  if (all.calls[0].type == ncclFloat) {
    sum<float>(
        all.calls, [](float x) { return x; }, [](float x) { return x; });
  } else {
    sum<uint16_t>(all.calls, bfloat16_to_float, float_to_bfloat16);
  }
}

void enqueue(const PendingCall& pending) {
  ncclComm& rank = *pending.rank;
  Clique& clique = *rank.clique;
  const uint64_t number = rank.calls++;
  std::shared_ptr<AllReduce>& all = clique.unfinished[number];
  if (!all) {
    all = std::make_shared<AllReduce>();
    all->ranks = clique.ranks;
    all->members.resize(clique.ranks);
    all->called.resize(clique.ranks);
    all->calls.resize(clique.ranks);
    all->run = [raw = all.get()] { perform(*raw); };
  }
  const std::shared_ptr<AllReduce> kept = all;
  kept->calls[rank.rank] = pending.call;
  const size_t bytes = pending.call.count * size_of(pending.call.type);
  Work work{"allreduce", std::to_string(bytes) + " bytes"};
  work.engine = Engine::peer;
  // Each rank sends and receives 2 (n - 1) / n of the data around a ring.
  work.us = 2.0 * (clique.ranks - 1) / clique.ranks * static_cast<double>(bytes) / kStreamModel.peer;
  work.touches = {{static_cast<const std::byte*>(pending.call.from), bytes, false},
                  {static_cast<const std::byte*>(pending.call.to), bytes, true}};
  work.collective = kept;
  work.enqueued = [&](const Operation& operation) {
    kept->members[rank.rank] = std::const_pointer_cast<Operation>(operation.shared_from_this());
    kept->called[rank.rank] = true;
  };
  bool all_called = true;
  for (unsigned other = 0; other < clique.ranks; ++other)
    all_called = all_called && (other == rank.rank || kept->called[other]);
  if (all_called) clique.unfinished.erase(number);
  streams().enqueue(*pending.stream, std::move(work));
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    case ncclInternalError:
      return "internal error";
    case ncclInvalidArgument:
      return "invalid argument";
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

namespace {

/// The frame of NCCL's calls: errors are NCCL's.
template <class Body>
ncclResult_t nccl_call(const char* function, const Body& body) {
  ncclResult_t result = ncclSuccess;
  const cudaError_t error = host_call(function, [&] {
    result = body();
    return cudaSuccess;
  });
  return error == cudaSuccess ? result : ncclUnhandledCudaError;
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  if (!version) return ncclInvalidArgument;
  *version = 22800;
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t* ranks, int count, const int* devices) {
  return nccl_call("ncclCommInitAll", [&] {
    if (!ranks || count < 1 || count > device_count()) return ncclInvalidArgument;
    auto clique = std::make_shared<Clique>();
    clique->ranks = static_cast<unsigned>(count);
    for (int rank = 0; rank < count; ++rank) {
      const int device = devices ? devices[rank] : rank;
      if (device < 0 || device >= device_count()) return ncclInvalidArgument;
    }
    for (int rank = 0; rank < count; ++rank)
      ranks[rank] = new ncclComm{clique, static_cast<unsigned>(rank), devices ? devices[rank] : rank};
    return ncclSuccess;
  });
}

ncclResult_t ncclCommDestroy(ncclComm_t rank) {
  const cudaError_t error = destroying_call("ncclCommDestroy", [&] {
    delete rank;
    return cudaSuccess;
  });
  return error == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommAbort(ncclComm_t rank) {
  if (!rank) return ncclInvalidArgument;
  Clique& clique = *rank->clique;
  clique.aborted = true;
  for (const auto& [number, all] : clique.unfinished) {
    all->called.assign(clique.ranks, true);
    all->run = [] {};
  }
  return ncclCommDestroy(rank);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t rank, ncclResult_t* error) {
  if (!rank || !error) return ncclInvalidArgument;
  *error = rank->clique->aborted ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  return nccl_call("ncclGroupStart", [&] {
    ++group_depth;
    return ncclSuccess;
  });
}

ncclResult_t ncclGroupEnd() {
  return nccl_call("ncclGroupEnd", [&] {
    if (!group_depth) return ncclInvalidUsage;
    if (--group_depth) return ncclSuccess;
    const std::vector<PendingCall> calls = std::exchange(group, {});
    if (const ncclResult_t error = std::exchange(group_error, ncclSuccess)) return error;
    for (const PendingCall& call : calls) enqueue(call);
    return ncclSuccess;
  });
}

ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t rank, cudaStream_t stream) {
  const ncclResult_t result = nccl_call("ncclAllReduce", [&] {
    if (!rank || !from || !to || operation != ncclSum || (type != ncclFloat && type != ncclBfloat16))
      return ncclInvalidArgument;
    CUstream_st* found = streams().find(stream, DefaultStream::legacy, rank->device);
    if (!found || found->device != rank->device || found->capture) return ncclInvalidUsage;
    for (const void* memory : {from, static_cast<const void*>(to)}) {
      const AllocationPointer allocation = streams().memory.find(memory);
      if (!allocation || allocation->kind != MemoryKind::device || allocation->device != rank->device)
        return ncclInvalidArgument;
    }
    const PendingCall call{{from, to, count, type}, rank, found};
    if (group_depth) {
      group.push_back(call);
      return ncclSuccess;
    }
    if (rank->clique->ranks > 1) {
      fail(
          fmt::format("ncclAllReduce of rank {} of {} outside of a group: a thread that drives several ranks "
                      "would wait for ever; ncclGroupStart and ncclGroupEnd are missing",
                      rank->rank, rank->clique->ranks));
    }
    enqueue(call);
    return ncclSuccess;
  });
  if (group_depth && result) group_error = result;
  return result;
}
