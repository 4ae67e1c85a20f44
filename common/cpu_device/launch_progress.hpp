/// @file
/// How far the kernel that runs now is: for another thread of the host, which may look at any time.
#pragma once
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>

namespace cpu_device {

struct LaunchProgress {
  uint64_t launches = 0;     ///< that have begun
  bool runs = false;         ///< one of them has not ended; what follows is about the last
  std::string name;          ///< of its kernel
  uint64_t blocks = 0;       ///< of its grid
  uint64_t blocks_done = 0;  ///< that have ended, without a mistake
  double seconds = 0;        ///< since it began
  uint64_t turns = 0;        ///< of threads of kernels: changes, unless one runs on and on
};
/// LaunchProgress::turns. Where several OS threads count, some are lost.
inline std::atomic<uint64_t> turns_of_threads = 0;
LaunchProgress launch_progress();

/// Of the kernel that runs: the barrier that the threads of a block have passed so often that their loop may
/// have no end. A sentence, or nothing.
std::string describe_endless_loop();
/// A launch that is given numbers ends with an error where a block has passed a barrier four times as often
/// as the largest says, and 1024 times, and more often than one block of a product of matrices of that size
/// takes steps, and has run for so many seconds. Another kernel may be right and do so: only programs of
/// products set it.
inline std::atomic<double> endless_loops_end_after = std::numeric_limits<double>::infinity();
/// Names on stderr where each thread is that has run on and on until now, as that is done after 2 s, too.
void name_long_turns();

/// What explains a wrong result on the host's side: what was queued, and not waited for, when an exception
/// left the program's code; a slot that was given back while a copy was queued on it; a kernel that has read
/// what nobody had written, with several streams; a download that has brought a part of its buffer alone.
/// Sentences, a line each, or nothing.
std::string describe_host_side();

/// The memory of the host may be used by others from now on: the host function that runs must not read it.
void note_given_back(const void* memory, size_t bytes);
/// A ring has handed out this slot of pinned memory, or got it back.
void note_slot_taken(const std::string& ring, int number, const void* memory);
void note_slot_given_back(const void* memory);
/// This OS thread writes to memory because it gives it back. Volatile, as compilers know that memset reads no
/// variable.
inline thread_local volatile bool spoils_what_it_gives_back = false;

/// What queued work has done against the rules since an exception left the program's code: the destructors on
/// its way have let it run. It comes before the exception's own words, which tell of its effect. Else
/// nothing.
std::string take_broken_rule();

}  // namespace cpu_device
