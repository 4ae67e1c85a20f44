/// @file
/// What streams queue: operations, the order between them, and the memory that they touch. Private to the
/// host's side of the CPU device.
#pragma once
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/cpu_device/base/location.hpp"
#include "common/cpu_device/observe/global_accesses.hpp"

namespace cpu_device {

/// "07_streams/pipeline.cpp:72".
std::string describe_place(const Location&);
/// The variable that a cudaStreamCreate there is given, with the place; empty where that is not known.
/// @param element where the stream's handle will be: of an array that a loop fills it says which element
std::string describe_creation(const Location&, const void* const* element);

/// How much of what each lane did comes before something: a vector clock over lanes.
class OrderClock {
 public:
  uint64_t operator[](unsigned lane) const { return lane < ticks_.size() ? ticks_[lane] : 0; }
  void raise(unsigned lane, uint64_t tick);
  void join(const OrderClock&);
  /// Keeps of each lane what both know.
  void meet(const OrderClock&);
  bool covers(const OrderClock&) const;
  /// Forgets the last tick of the lane.
  void step_back(unsigned lane) { --ticks_[lane]; }

 private:
  std::vector<uint64_t> ticks_;
};

/// Bytes that an operation reads or writes.
struct Touch {
  const std::byte* begin = nullptr;
  size_t bytes = 0;
  bool write = false;
  /// Of a kernel that began early: where it does so before it has waited. Else null.
  std::shared_ptr<const AccessesOfPlace> early_at = nullptr;
};

enum class Engine : uint8_t { none, upload, download, peer, multiprocessors };
constexpr unsigned kEngines = 5;

/// A moment of virtual time that is known once everything enqueued before has run.
struct TimePoint {
  bool is_known = false;
  double us = 0;
};

struct StreamCollective;
struct Operation;

/// What an operation does, apart from where it stands.
struct Work {
  explicit Work(const char* kind = "", std::string name = "", Location where = {})
      : kind(kind), name(std::move(name)), where(where) {}

  const char* kind;                ///< "upload", "kernel", ...: the words of reports and of StreamSpan::kind
  std::string name;                ///< of a kernel; "4096 bytes"
  Location where;                  ///< of the call; empty where reports do not ask for it
  std::vector<uintptr_t> callers;  ///< of a call that cannot say where it is
  std::function<void(Operation&)> run;
  std::function<void(const Operation&)> enqueued;  ///< before it can run
  /// Before each launch of a graph that captured it. @param frame of the caller; what is below has returned
  std::function<void(const std::byte* frame)> before_launch;
  std::vector<Touch> touches;  ///< as far as known when it is enqueued
  Engine engine = Engine::none;
  double us = 0;  ///< how long it keeps the engine; of kernels known when they have run
  std::shared_ptr<StreamCollective> collective;
  bool is_host_function = false;
  bool pdl = false;  ///< of a kernel: perhaps before the kernel before it in the stream has ended
  std::vector<const void*> pointers;  ///< of a kernel, among its parameters
  bool reaches_host = false;          ///< a kernel: a parameter points to pinned memory
  bool never_waited = false;          ///< and it has not waited for that one at all; known when it has run
  bool watches_source = false;        ///< a copy: the host must leave alone what it reads
  bool spoils_target = false;         ///< a copy: the host must not read yet what it writes
  bool is_on_timeline = true;         ///< shown in the trace
  bool gives_back = false;            ///< memory: done even where work is abandoned
  /// Of the legacy stream: why the call returns before its work is done. Null: it has been done then.
  const char* returns_early = nullptr;
};

/// Operations on a lane are ordered: a stream, or a branch of a graph.
struct Lane {
  int device = 0;
  unsigned number = 0;  ///< its component in clocks
  std::string name;     ///< "stream 3"
  std::string origin;   ///< "`copies`, created at main.cu:12"; empty where that is not known
  /// Who created it, where `origin` is a helper that lessons share.
  std::shared_ptr<const std::vector<uintptr_t>> creators;
  bool is_legacy = false;
  std::shared_ptr<Operation> last;
};

struct Operation : Work, std::enable_shared_from_this<Operation> {
  uint64_t id = 0;  ///< counts in the order of enqueueing, from 1
  int device = 0;
  unsigned lane = 0;
  std::string stream, stream_origin;
  std::shared_ptr<const std::vector<uintptr_t>> stream_creators;
  bool on_legacy_stream = false;
  bool done = false;
  /// A kernel that spun on what the host had yet to do, or to queue, so that the schedule may not run it
  /// again by itself.
  bool put_off = false;
  bool met_others = false;  ///< a kernel that changes by atomic operations what others see, or that spun
  std::vector<std::byte> source;                  ///< what the source must still be, where it is watched
  std::vector<std::shared_ptr<Operation>> after;  ///< forgotten once it has run
  OrderClock clock;                               ///< of what comes before it, and of itself
  OrderClock early_clock;  ///< of what comes before its first step, of a programmatic dependent launch
  std::shared_ptr<TimePoint> end = std::make_shared<TimePoint>();
  std::vector<std::shared_ptr<TimePoint>> starts_after;
  double not_before_us = 0;

  bool is_kernel() const { return std::string_view(kind) == "kernel"; }
  bool allocates() const { return std::string_view(kind) == "allocation"; }
  bool frees() const { return std::string_view(kind) == "cudaFreeAsync"; }
  bool is_of_event() const {
    return std::string_view(kind) == "cudaEventRecord" || std::string_view(kind) == "cudaStreamWaitEvent";
  }
  bool is_before(const Operation& other) const { return other.clock[lane] >= clock[lane]; }
  /// "the upload on stream 1", "kernel gemm on stream 2".
  std::string describe() const;
  /// "kernel fill on stream 1 (`a`, created at main.cu:5): main.cu:9"; empty where neither place is known.
  std::string describe_places() const;
};
using OperationPointer = std::shared_ptr<Operation>;

/// An operation that begins on several lanes at once.
struct StreamCollective {
  unsigned ranks = 0;
  std::vector<std::weak_ptr<Operation>> members;  ///< by rank; empty where a rank has not called yet
  std::vector<bool> called;
  std::function<void()> run;  ///< once for all
  bool has_run = false;
};

/// The host function that runs on this OS thread; null if none does.
const Operation* running_host_function();
/// While it lives, that is `operation`. An exception that cannot leave it, because it is noexcept, ends the
/// program with a line on stderr.
class InsideHostFunction {
 public:
  explicit InsideHostFunction(const Operation& operation);
  ~InsideHostFunction();
  InsideHostFunction(const InsideHostFunction&) = delete;

 private:
  std::terminate_handler before_;
};

/// With a line on stderr: where no exception can be thrown.
[[noreturn]] void end_program(const std::string& what);

}  // namespace cpu_device
