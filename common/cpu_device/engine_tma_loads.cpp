/// @file
/// TMA loads: one thread brings a box to shared memory; an mbarrier counts its bytes.
#include <cstring>

#include "common/cpu_device/engine_tma.hpp"

namespace cpu_device {

void tma_load(void* shared, const void* map, int column, int row, uint64_t* barrier, Location where) {
  Thread& thread = this_thread(where);
  Cluster& cluster = thread.cluster;
  auto load = std::make_unique<TmaLoad>();
  load->issuer = &thread;
  load->where = where;
  load->box = make_box(thread, map, shared, column, row, "TMA load", where);
  load->barrier = &find_mbarrier(thread, barrier, where);
  load->phase = load->barrier->phase;
  if (!load->barrier->fenced) {
    cluster.fail(thread,
                 "TMA load: no fence.mbarrier_init after the initialisation of " + describe(*load->barrier) +
                     ", so the async proxy may not see the barrier",
                 where);
  }

  count_box(cluster, load->box, /*load=*/true);
  if (VirtualClock* clock = cluster.clock()) {
    load->lands_at = clock->copy_async(thread.number, load->box.bytes_inside());
  }
  if (RaceChecker* races = cluster.races()) {
    races->issue(load->race_operation, thread.number, RaceChecker::Queue::none, Proxy::async, "TMA load",
                 cluster.site(where));
    races->annotate(load->race_operation, " for " + name_of(*load->barrier));
  }
  cluster.submit(std::move(load));
  cluster.leave_if_failed();
  cluster.jitter(thread);
}

void TmaLoad::land(Cluster& cluster) {
  Block& block = *issuer->block;
  std::byte line[kMaxBoxRowBytes];
  for (uint32_t r = 0; r < box.map.box_rows; ++r) {
    const TmaBox::Piece piece = box.inside(r);
    if (piece.bytes < box.row_bytes()) std::memset(line, 0, box.row_bytes());
    if (piece.bytes) std::memcpy(line + piece.first_byte, piece.global, piece.bytes);
    for (uint32_t byte = 0; byte < box.row_bytes(); byte += kTmaChunkBytes) {
      block.shared.write_both_views(box.chunk_offset(r, byte), line + byte, kTmaChunkBytes);
    }
  }
  if (RaceChecker* races = cluster.races()) {
    races->access(race_operation, block.ids.rank_in_cluster, box.shared_offset, box.shared_bytes(),
                  /*write=*/true);
  }
  count_bytes_of(cluster, *barrier, *this);
}

}  // namespace cpu_device
