/// @file
/// Records streams on the GPU: CUPTI writes a record for every kernel, copy and memset into buffers that we
/// lend it.
#include <cupti.h>
#include <cxxabi.h>
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "07_streams/timeline/host_trace.hpp"
#include "common/host/base/text.hpp"
#include "common/host/program/program.hpp"

namespace lesson07 {
namespace {

// The layouts that CUDA 12.0 has. Later ones only append to them.
using KernelRecord = CUpti_ActivityKernel8;
using CopyRecord = CUpti_ActivityMemcpy5;
using PeerCopyRecord = CUpti_ActivityMemcpyPtoP4;
using MemsetRecord = CUpti_ActivityMemset4;

constexpr std::array kRecorded = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                  CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
constexpr size_t kBufferBytes = 4 << 20;
constexpr size_t kBufferAlignment = 8;  // as CUPTI asks for

void check_cupti(CUptiResult result, const char* call) {
  if (result == CUPTI_SUCCESS) return;
  const char* words = "unknown";
  cuptiGetResultString(result, &words);
  throw ladder::BadInput(std::string("--trace: ") + call + " failed: " + words +
                         "; is another profiler attached?");
}
#define CUPTI_CHECK(call) check_cupti((call), #call)

/// An operation as CUPTI tells it. Times in nanoseconds of its own clock.
struct Operation {
  int device = 0;
  std::optional<unsigned> stream;  ///< CUPTI's number; nothing for host functions
  Engine engine = Engine::compute;
  std::string name;
  uint64_t begin_ns = 0, end_ns = 0;
};

/// What CUPTI's thread, and threads that run host functions, have reported.
struct Operations {
  std::mutex mutex;
  std::vector<Operation> list;
  size_t lost = 0;
};
Operations& operations() {
  static Operations all;
  return all;
}
std::atomic<bool> recording = false;

/// "lesson06::gemm" of a mangled name with arguments.
std::string readable(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 ? demangled.get() : mangled;
  name = name.substr(0, name.find_first_of("<("));
  const size_t blank = name.rfind(' ');  // behind the return type of a template
  return blank == std::string::npos ? name : name.substr(blank + 1);
}

std::string with_size(const char* what, uint64_t bytes) {
  return std::string(what) + " " + ladder::fixed(static_cast<double>(bytes) / 1e6, 1) + " MB";
}

Operation operation_of(const KernelRecord& record) {
  const std::string name = readable(record.name);
  const Engine engine = name.starts_with("ncclDevKernel") ? Engine::all_reduce : Engine::compute;
  return {static_cast<int>(record.deviceId), record.streamId, engine, name, record.start, record.end};
}

Operation operation_of(const CopyRecord& record) {
  Operation result{static_cast<int>(record.deviceId), record.streamId, Engine::compute,
                   with_size("copy", record.bytes),   record.start,    record.end};
  if (record.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD) {
    result.engine = Engine::upload;
    result.name = with_size("upload", record.bytes);
  } else if (record.copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH) {
    result.engine = Engine::download;
    result.name = with_size("download", record.bytes);
  }
  return result;
}

Operation operation_of(const PeerCopyRecord& record) {
  const std::string name = fmt::format("{} from GPU {} to {}", with_size("copy", record.bytes),
                                       record.srcDeviceId, record.dstDeviceId);
  return {
      static_cast<int>(record.deviceId), record.streamId, Engine::peer_copy, name, record.start, record.end};
}

Operation operation_of(const MemsetRecord& record) {
  return {static_cast<int>(record.deviceId), record.streamId, Engine::compute,
          with_size("memset", record.bytes), record.start,    record.end};
}

/// Called where no exception may pass: by CUPTI, which is C, and in a destructor.
template <class Add>
void add_or_lose(const Add& add) noexcept {
  try {
    add();
  } catch (...) {
    ++operations().lost;
  }
}

void keep(const CUpti_Activity* record) {
  const auto add = [&](const auto* of_kind) { operations().list.push_back(operation_of(*of_kind)); };
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return add(reinterpret_cast<const KernelRecord*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return add(reinterpret_cast<const CopyRecord*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return add(reinterpret_cast<const PeerCopyRecord*>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return add(reinterpret_cast<const MemsetRecord*>(record));
    default:
      return;
  }
}

void CUPTIAPI lend_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  *size = *buffer ? kBufferBytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI take_buffer_back(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t used) {
  const std::lock_guard lock(operations().mutex);
  CUpti_Activity* record = nullptr;
  while (used > 0 && cuptiActivityGetNextRecord(buffer, used, &record) == CUPTI_SUCCESS)
    add_or_lose([&] { keep(record); });
  size_t lost = 0;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &lost) == CUPTI_SUCCESS) operations().lost += lost;
  std::free(buffer);
}

uint64_t now_ns() {
  uint64_t now = 0;
  cuptiGetTimestamp(&now);
  return now;
}

/// Times begin at 0, and the streams of each device are numbered in the order of their first operations.
std::vector<StreamSpan> spans_of(std::vector<Operation> list) {
  std::sort(list.begin(), list.end(),
            [](const Operation& a, const Operation& b) { return a.begin_ns < b.begin_ns; });
  std::map<int, std::map<unsigned, size_t>> numbers;
  std::vector<StreamSpan> spans;
  for (const Operation& operation : list) {
    std::string stream = "host functions";
    if (operation.stream) {
      auto& of_device = numbers[operation.device];
      const size_t number = of_device.try_emplace(*operation.stream, of_device.size()).first->second;
      stream = "stream " + std::to_string(number);
    }
    const auto us = [&](uint64_t ns) { return static_cast<double>(ns - list.front().begin_ns) / 1e3; };
    spans.push_back({operation.device, stream, operation.engine, operation.name, us(operation.begin_ns),
                     us(operation.end_ns)});
  }
  return spans;
}

}  // namespace

void HostTrace::start() {
  CUPTI_CHECK(cuptiActivityRegisterCallbacks(lend_buffer, take_buffer_back));
  for (const CUpti_ActivityKind kind : kRecorded) CUPTI_CHECK(cuptiActivityEnable(kind));
  {
    const std::lock_guard lock(operations().mutex);
    operations().list.clear();
    operations().lost = 0;
  }
  recording = true;
  running_ = true;
}

void HostTrace::stop() {
  running_ = false;
  recording = false;
  for (const CUpti_ActivityKind kind : kRecorded) CUPTI_CHECK(cuptiActivityDisable(kind));
  CUPTI_CHECK(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));

  const std::lock_guard lock(operations().mutex);
  if (operations().lost > 0)
    throw ladder::BadInput(
        fmt::format("--trace: CUPTI dropped {} records; trace fewer batches", operations().lost));
  std::vector<Operation> list = std::move(operations().list);
  operations().list.clear();
  spans_ = spans_of(std::move(list));
}

HostFunctionSpan::HostFunctionSpan(const char* name, int device)
    : name_(name), device_(device), begin_ns_(recording ? now_ns() : 0) {}

HostFunctionSpan::~HostFunctionSpan() {
  if (begin_ns_ == 0 || !recording) return;
  const uint64_t end_ns = now_ns();
  const std::lock_guard lock(operations().mutex);
  add_or_lose([&] {
    operations().list.push_back({device_, std::nullopt, Engine::host, name_, begin_ns_, end_ns});
  });
}

}  // namespace lesson07
