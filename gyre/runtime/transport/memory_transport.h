// Links within one process: messages change hands without a copy.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "gyre/runtime/transport/doorbell.h"
#include "gyre/runtime/transport/link.h"

namespace gyre {

// The bells that links ring. Each worker sleeps on its own, and so does the conductor.
struct Doorbells {
  explicit Doorbells(int workers);
  Doorbell& of(int worker) const { return worker == kConductor ? *conductor : *workers[static_cast<size_t>(worker)]; }
  std::vector<std::unique_ptr<Doorbell>> workers;
  std::unique_ptr<Doorbell> conductor = std::make_unique<Doorbell>();
};

class MemoryTransport final : public Transport {
 public:
  // `bells` must outlive the links.
  explicit MemoryTransport(const Doorbells& bells) : bells_(bells) {}
  std::unique_ptr<Sender> sender(const LinkId& id, const LinkEnds& ends) override;
  std::unique_ptr<Receiver> receiver(const LinkId& id, const LinkEnds& ends) override;

 private:
  class Queue;
  std::shared_ptr<Queue> queue(const LinkId& id, const LinkEnds& ends);

  const Doorbells& bells_;
  std::map<LinkId, std::shared_ptr<Queue>> queues_;
};

}  // namespace gyre
