/// @file
/// What <nccl.h> declares: all-reduces of devices that one host thread drives. It exists so that the host
/// code of lesson 07's experiments with several GPUs can be tested; it says nothing of how NCCL does it.
#pragma once
#include <cstddef>

#include "common/cpu_device/declarations/host_types.hpp"

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7
};
enum ncclDataType_t { ncclFloat32 = 7, ncclFloat = 7, ncclBfloat16 = 9 };
enum ncclRedOp_t { ncclSum = 0 };

struct ncclComm;
using ncclComm_t = ncclComm*;

const char* ncclGetErrorString(ncclResult_t);
ncclResult_t ncclGetVersion(int* version);
/// A communicator of `count` ranks, one for each device; without `devices`, devices 0 to count - 1.
ncclResult_t ncclCommInitAll(ncclComm_t* ranks, int count, const int* devices);
ncclResult_t ncclCommDestroy(ncclComm_t rank);
/// Destroys it, and what it has not done yet ends without a result: for all ranks, which then have
/// ncclRemoteError.
ncclResult_t ncclCommAbort(ncclComm_t rank);
ncclResult_t ncclCommGetAsyncError(ncclComm_t rank, ncclResult_t* error);
ncclResult_t ncclGroupStart();
ncclResult_t ncclGroupEnd();
/// to = the sum over all ranks of their `from`, in the order of the ranks; on every rank an operation of its
/// stream that waits for those of the others.
ncclResult_t ncclAllReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t rank, cudaStream_t stream);
