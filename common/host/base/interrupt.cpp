/// @file
/// Ctrl-C sets a flag.
#include "common/host/base/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace ladder {
namespace {

// A signal handler may touch nothing but lock-free atomics.
std::atomic<bool> pressed{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int) {
  pressed = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

void catch_interrupts() {
  pressed = false;
  std::signal(SIGINT, on_interrupt);
}
bool interrupted() { return pressed; }

}  // namespace ladder
