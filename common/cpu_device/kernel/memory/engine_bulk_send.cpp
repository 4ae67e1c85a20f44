/// @file
/// cp.async.bulk from the shared memory of a block to that of another block of its cluster.
#include <vector>

#include "common/cpu_device/kernel/engine_cluster.hpp"
#include "common/cpu_device/kernel/engine_mbarriers.hpp"
#include "common/cpu_device/kernel/engine_shared_memory.hpp"
#include "common/cpu_device/kernel/instructions.hpp"
#include "common/cpu_device/kernel/memory/engine_remote.hpp"
#include "common/cpu_device/kernel/reports/names.hpp"
#include "common/cpu_device/observe/hooks.hpp"

namespace cpu_device {
namespace {

constexpr const char* kCopy = "bulk copy";

struct BulkSend : CountedCopy {
  uint32_t from = 0, to = 0, count = 0;

  void land(Cluster& cluster) override {
    check_not_over_mbarrier(cluster, *this, *target, to, count);
    if (cluster.failed()) return;
    Block& source = *issuer->block;
    const std::byte* const view = source.shared.read_async_view() + from;
    const std::vector<std::byte> data(view, view + count);
    target->shared.write_both_views(to, data.data(), count);
    if (RaceChecker* races = cluster.races()) {
      races->access(race_operation, source.ids.rank_in_cluster, from, count, /*write=*/false);
      races->access(race_operation, target->ids.rank_in_cluster, to, count, /*write=*/true);
    }
    count_bytes_of(cluster, *this);
  }
  uint32_t bytes() const override { return count; }
  const char* arrival() const override { return "bytes of a bulk copy"; }
  const char* what() const override { return kCopy; }
};

}  // namespace

void bulk_send(void* to, unsigned rank, const void* from, uint32_t bytes, uint64_t* barrier, Location where) {
  CPU_DEVICE_NOTE_CALL(where);
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  constexpr uint32_t kUnit = 16;
  if (bytes % kUnit || !bytes)
    cluster.fail(thread, print("bulk copy of %u bytes, which is no multiple of 16", bytes), where);
  Block& target = find_block(thread, rank, kCopy, where);
  auto copy = std::make_unique<BulkSend>();
  copy->issuer = &thread;
  copy->where = where;
  copy->target = &target;
  copy->from = shared_offset(thread, from, bytes, kCopy, where);
  copy->to = shared_offset(thread, to, bytes, kCopy, where);
  copy->count = bytes;
  if (copy->from % kUnit || copy->to % kUnit)
    cluster.fail(thread, "bulk copy: an address in shared memory is not aligned to 16 bytes", where);
  copy->barrier = &find_mbarrier(thread, target, barrier, kCopy, where);
  copy->phase = copy->barrier->phase;
  forget_mapping(thread, target);
  ++cluster.totals().async_copies;
  if (&target != thread.block) cluster.accesses().cluster_access(bytes);
  if (VirtualClock* clock = cluster.clock()) copy->lands_at = clock->send_to_block(thread.number, bytes);
  if (RaceChecker* races = cluster.races()) {
    const Unobserved unobserved;
    races->issue(copy->race_operation, thread.number, RaceChecker::Queue::none, Proxy::async, kCopy,
                 cluster.site(where));
    races->annotate(copy->race_operation, note_of(*copy->barrier));
  }
  cluster.submit(std::move(copy));
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

}  // namespace cpu_device
