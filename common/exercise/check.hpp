/// @file
/// What the checks of exercises share: running a learner's kernel in many ways, and saying in one sentence
/// what is not right yet.
#pragma once
#include <fmt/core.h>
#include <cstring>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/cuda/device_buffer.hpp"
#include "common/cuda/unwritten_reads.hpp"
#include "common/host/device/compiled_code.hpp"
#include "common/host/device/execution.hpp"
#include "common/host/problem/bf16.hpp"

namespace ladder::exercise {

/// What sentences say of NaN.
constexpr const char* kNeverWritten = "NaN, which marks memory that was never written";

/// What a known mistake makes of a result.
struct Alternative {
  std::string text;                          ///< as "each of them is what the row above must hold"
  std::function<float(size_t place)> value;  ///< that an element has then
};

/// A vector or a row-major matrix as it is, and as it must be.
struct Comparison {
  std::string name;     ///< what messages call it, for example "C"
  size_t columns = 0;   ///< 0: a vector
  float tolerance = 0;  ///< by which an element may differ
  std::vector<float> got, expected;
  std::vector<Alternative> alternatives = {};  ///< the first that makes all wrong elements is named

  bool is_wrong(size_t i) const;  ///< NaN always is
  /// "row 1, column 2 of C", or "element 3 of y".
  std::string place(size_t i) const;
};

/// The first wrong element; how many are wrong, and where; and what they are instead, where that is what an
/// alternative makes, the right value of another place, the right value times or plus a number, or the right
/// value but for rounding. Empty if all are right.
std::string describe_wrong_values(const Comparison&);

/// The first element that was never written, how many were not, and where.
/// @param written for each element; not all
std::string describe_unwritten(const Comparison&, const std::vector<bool>& written);

/// The kernel is not right yet; what() is one sentence that says what to look at.
struct NotYet : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws NotYet with `sentence` unless `holds`
void expect(bool holds, const std::string& sentence);

/// Calls `body` by each of the CPU device's fixed schedules and by some random ones, with races checked; on
/// the GPU, once. @throws NotYet of the first that fails, with the name of its schedule if others were right
void on_every_schedule(const std::function<void()>& body);

/// The same for kernels whose blocks hand over to each other through global memory: blocks run in many
/// orders, and what they hand over is checked, too.
void on_every_block_order(const std::function<void()>& body);

/// Calls `body`, which was wrong, with races checked. @throws what it throws, unless that is NotYet: a race
/// explains wrong values
void expect_no_race(const std::function<void()>& body);

/// Calls `body`, and returns what its last launch did: how speed is judged. Nothing on the GPU, which does
/// not count.
std::optional<LaunchCounters> counted(const std::function<void()>& body);

/// The same, and what the first block of that launch did.
std::optional<LaunchRecord> recorded(const std::function<void()>& body);

/// The same for streams: what all work that `body` enqueues took.
std::optional<StreamCounters> counted_in_streams(const std::function<void()>& body);

/// All that main() of a check does. With arguments it is the test of a file that must fail:
///   --starter TEXT...  the check must fail, and say all of these in a sentence
///   --wrong TEXT...    the check must fail, and say all of these
///   --not TEXT...      behind those: the check must say none of these, nor the device in its report's first
///   line
/// @param architecture that the kernel must be compiled for, at least; 90 means with wgmma
/// @returns the exit code: 0; 1 where it is not as it must be; 4 where there is no GPU to run on
int run_check(int argc, char** argv, const std::function<void()>& check, int architecture = kAmpere);

inline float to_float(float value) { return value; }
inline float to_float(__nv_bfloat16 value) { return ladder::to_float(value); }

/// What the device writes: `size` elements in memory, and some behind them that it must leave alone.
/// T is float or __nv_bfloat16; Memory can be made with a number of elements, and has data().
template <class T, class Memory = DeviceBuffer<T>>
class Output {
 public:
  /// @param name what messages call it, for example "C". @param columns of a row-major matrix; 0 for a vector
  Output(std::string name, size_t size, size_t columns = 0)
      : name_(std::move(name)), size_(size), columns_(columns), memory_(size + kBehind) {
    take_work_of_kernels();  // of launches before
    const std::vector<T> values = untouched(size + kBehind);
    copy_to_device(memory_.data(), values.data(), values.size() * sizeof(T));
  }

  T* data() { return memory_.data(); }

  /// What it holds now. Some elements may not have been written.
  std::vector<T> values() const {
    std::vector<T> got = values_and_behind();
    got.resize(size_);
    return got;
  }
  /// For each element, whether it was written.
  std::vector<bool> written_places() const {
    std::vector<bool> places;
    for (const T& value : values()) places.push_back(is_written(value));
    return places;
  }

  /// @throws NotYet unless every element differs by at most `tolerance` from what it must be. Says which is
  /// the first wrong one, and what the wrong ones have in common
  void expect_equal(const std::vector<T>& expected, float tolerance = 0,
                    const std::vector<Alternative>& alternatives = {}) const {
    const std::vector<T> got = values_and_behind();
    size_t written = 0;
    for (size_t i = 0; i < got.size(); ++i) written += is_written(got[i]);
    expect(written > 0, "nothing was written to " + name_ + ": fill in the marked lines");
    for (size_t i = size_; i < got.size(); ++i)
      expect(!is_written(got[i]),
             i == size_ ? fmt::format("memory after {} was overwritten, right behind its last element: which "
                                      "threads must write nothing?",
                                      name_)
                        : fmt::format("memory after {} was overwritten, {} elements after its end: which "
                                      "threads must write nothing?",
                                      name_, i - size_));
    Comparison comparison{name_, columns_, tolerance, {}, {}, alternatives};
    if (const std::vector<bool> places = written_places(); written < size_)
      throw NotYet(describe_unwritten(comparison, places) + why_unwritten(places));
    for (size_t i = 0; i < size_; ++i) {
      comparison.got.push_back(to_float(got[i]));
      comparison.expected.push_back(to_float(expected[i]));
    }
    const std::string wrong = describe_wrong_values(comparison);
    expect(wrong.empty(), wrong);
  }

 private:
  /// What stores have done instead, as far as the device knows; else empty.
  std::string why_unwritten(const std::vector<bool>& written) const {
    const WorkOfKernels work = take_work_of_kernels();
    if (!columns_ || !work.exchanged_store) return "";
    const std::string text = work.exchanged_store(
        memory_.data(), static_cast<int>(size_ / columns_), static_cast<int>(columns_),
        [&](int row, int column) { return !written[size_t(row) * columns_ + size_t(column)]; });
    return text.empty() ? "" : ": " + text;
  }
  std::vector<T> values_and_behind() const {
    std::vector<T> got(size_ + kBehind);
    CUDA_CHECK(cudaMemcpy(got.data(), memory_.data(), got.size() * sizeof(T), cudaMemcpyDefault));
    return got;
  }

  static constexpr size_t kBehind = 16384;
  static constexpr unsigned char kUntouched = 0xfe;  // in every byte: a number that no result is

  static std::vector<T> untouched(size_t size) {
    std::vector<T> values(size);
    std::memset(static_cast<void*>(values.data()), kUntouched, size * sizeof(T));
    return values;
  }
  static bool is_written(const T& value) {
    static const T never = untouched(1).front();
    return std::memcmp(&value, &never, sizeof(T)) != 0;
  }

  std::string name_;
  size_t size_, columns_;
  Memory memory_;
};

/// Small integers from -4 to 4, different from place to place: sums of products of them are exact.
template <class T>
std::vector<T> small_integers(size_t size, unsigned seed) {
  std::vector<T> values(size);
  uint32_t state = 2654435761u * (seed + 1);
  for (T& value : values) {
    state = 1664525u * state + 1013904223u;
    value = T(static_cast<float>(static_cast<int>(state >> 24) % 9 - 4));
  }
  return values;
}

}  // namespace ladder::exercise
