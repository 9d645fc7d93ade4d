// Links of one segment among the workers of several processes: in memory if both ends are in this process, otherwise to
// another process.
#pragma once

#include <functional>
#include <memory>

#include "gyre/runtime/ranks/ranks.h"
#include "gyre/runtime/transport/memory_transport.h"

namespace gyre {

class RankTransport final : public Transport {
 public:
  // segment: its number in the run, from 1. rank_of: a worker's process; for kConductor, 0. All arguments must outlive
  // it.
  RankTransport(Ranks& ranks, int64_t segment, std::function<int(int)> rank_of, Transport& memory,
                const Doorbells& bells)
      : ranks_(ranks), segment_(segment), rank_of_(std::move(rank_of)), memory_(memory), bells_(bells) {}
  ~RankTransport() override { ranks_.end_segment(segment_); }

  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override {
    const int to = rank_of_(ends.to);
    if (to == ranks_.rank()) return memory_.sender(id, ends);
    return ranks_.sender(to, segment_, id, ends.capacity, bells_.of(ends.from));
  }
  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override {
    const int from = rank_of_(ends.from);
    if (from == ranks_.rank()) return memory_.receiver(id, ends);
    return ranks_.receiver(from, segment_, id, ends.capacity, bells_.of(ends.to));
  }

 private:
  Ranks& ranks_;
  int64_t segment_;
  std::function<int(int)> rank_of_;
  Transport& memory_;
  const Doorbells& bells_;
};

}  // namespace gyre
