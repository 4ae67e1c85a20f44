/// @file
/// The program 07_default_streams: default streams of a thread. This file, and no other of the program, is
/// compiled with `--default-stream per-thread`, so here stream 0 is a stream of the calling thread. It is a
/// matter of the compiler: there is no environment variable for it, and code that was compiled without it
/// means the legacy default stream by 0, also where it is called from here.
///
/// Two host threads have batches of their own and use no stream but their default one.
#include <barrier>
#include <iostream>
#include <thread>

#include "07_streams/experiments/support.hpp"
#include "common/host/base/arguments.hpp"
#include "common/host/base/table.hpp"
#include "common/host/base/text.hpp"
#include "common/host/device/device.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/problem/shape.hpp"
#include "common/host/program/program.hpp"
#include "common/host/program/results.hpp"

namespace lesson07 {
namespace {

constexpr int kThreads = 2;

/// The copies are made here, where 0 is this thread's stream.
void copy_in(BatchSlot& slot) {
  CUDA_CHECK(
      cudaMemcpyAsync(slot.a(), slot.host_a().data(), slot.host_a().bytes(), cudaMemcpyHostToDevice, 0));
}
void copy_out(BatchSlot& slot) {
  CUDA_CHECK(
      cudaMemcpyAsync(slot.host_c().data(), slot.c(), slot.host_c().bytes(), cudaMemcpyDeviceToHost, 0));
}

/// What each thread does with each of its batches. The kernel is launched by code that was compiled without
/// the option, so it must be told the stream by its handle.
void run_batch(BatchSlot& slot) {
  copy_in(slot);
  slot.multiply(cudaStreamPerThread);
  copy_out(slot);
}
/// Hands 0 to that code: it takes it for the legacy default stream. This is correct, because that waits for
/// the upload and the download waits for it; but it also waits for the other thread.
void run_batch_with_kernel_in_0(BatchSlot& slot) {
  copy_in(slot);
  slot.multiply(nullptr);
  copy_out(slot);
}

/// Every thread runs its batches in its own slot, then waits for its default stream.
void run_in_threads(std::vector<BatchSlot>& slots, int batches,
                    const std::function<void(BatchSlot&)>& batch) {
  std::barrier<> together(static_cast<std::ptrdiff_t>(slots.size()));  // neither thread runs far ahead
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(slots.size());
  for (size_t i = 0; i < slots.size(); ++i)
    threads.emplace_back([&, i] {
      try {
        for (int b = 0; b < batches; ++b) {
          together.arrive_and_wait();
          batch(slots[i]);
        }
        CUDA_CHECK(cudaStreamSynchronize(0));
      } catch (...) {
        errors[i] = std::current_exception();
        together.arrive_and_drop();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void run(const Context& context) {
  const int batches = announced_batches(context);
  const RandomWeights weights(context.shape.k, context.shape.n);
  std::vector<BatchSlot> slots = make_slots(weights, context.shape.m, kThreads);
  ladder::DeviceBuffer<int> counter(1);
  std::vector<Variant> variants = {
      {"one thread has all batches",
       {},
       [&] {
         for (int b = 0; b < batches; ++b)
           for (BatchSlot& slot : slots) run_batch(slot);
         CUDA_CHECK(cudaStreamSynchronize(0));
       }},
      {"two threads", {}, [&] { run_in_threads(slots, batches, run_batch); }},
      {"two threads, and a memset in the legacy stream",
       {},
       [&] {
         run_in_threads(slots, batches, [&](BatchSlot& slot) {
           run_batch(slot);
           CUDA_CHECK(cudaMemsetAsync(counter.data(), 0, sizeof(int), cudaStreamLegacy));
         });
       }},
      {"two threads, kernels by code for which 0 is legacy", {}, [&] {
         run_in_threads(slots, batches, run_batch_with_kernel_in_0);
       }}};
  for (Variant& variant : variants) variant.settings["work"] = variant.label;
  const std::vector<Measured> measured = measure_interleaved(variants, context.rounds);

  ladder::Table table(
      context.out,
      {{"each batch in its thread's default stream", 50, false}, {"us a batch", 10}, {"x first", 7}});
  table.header();
  for (size_t i = 0; i < variants.size(); ++i) {
    table.row({variants[i].label, us_text(measured[i].median_us / (kThreads * batches)),
               ladder::fixed(measured[i].median_us / measured[0].median_us, 2)});
    add_result(context, "default_streams", variants[i], context.shape, measured[i]);
  }
}

int run_with(int argc, char** argv) {
  const bool cpu = ladder::on_cpu_device();
  ladder::Arguments arguments("Two host threads, each with a default stream of its own",
                              "07_default_streams");
  std::string shapes = cpu ? "192x256x256" : "2048x4096x4096", batches = cpu ? "4" : "40", rounds = "5", json;
  ladder::ExecutionOptions execution;
  arguments.add_option("--shape", shapes, "MxNxK", "A batch has M rows, the weights are K x N");
  arguments.add_option("--batches", batches, "B", "Batches of each thread");
  if (!cpu) arguments.add_option("--rounds", rounds, "R", "Samples of each measurement");
  arguments.add_option("--json", json, "PATH", "Write the results to this file");
  execution.add_to(arguments);
  if (!arguments.parse(argc, argv)) return ladder::kExitOk;
  const auto number = [](const char* option, const std::string& text) {
    return static_cast<int>(ladder::parse_number(option, text, 1, 10'000));
  };
  const std::vector<ladder::Shape> parsed_shapes = ladder::parse_shapes("--shape", shapes);
  const ladder::Execution parsed_execution = execution.parsed();

  ladder::require_device();
  ladder::ResultFile results = ladder::new_result_file();
  std::cout << results.gpu << ", " << results.toolkit << (cpu ? ": times are virtual" : "") << "\n";
  for (const std::string& schedule : parsed_execution.schedules) {
    ladder::use_schedule(parsed_execution, schedule);
    for (const ladder::Shape& shape : parsed_shapes) {
      run({std::cout, results, shape, number("--batches", batches), number("--rounds", rounds)});
      ladder::write_results_so_far("--json", json, results);
    }
  }
  if (!json.empty()) ladder::write_results("--json", json, results);
  return ladder::kExitOk;
}

}  // namespace
}  // namespace lesson07

int main(int argc, char** argv) {
  return ladder::run_program("07_default_streams", [&] { return lesson07::run_with(argc, argv); });
}
