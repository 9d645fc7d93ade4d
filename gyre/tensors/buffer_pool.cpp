#include "gyre/tensors/buffer_pool.h"

#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "gyre/tensors/device.h"

namespace gyre {

struct PooledBuffer::Entry {
  FlatBuffer buffer;
  bool taken = false;
  int64_t leases = 0;
  std::vector<DeviceEvent> uses = {};  // ended on the host, perhaps not yet on the device
  bool is_lost = false;                // an end of a use could not be recorded: not to be used again
};

class PooledBuffer::Pool : public std::enable_shared_from_this<Pool> {
 public:
  Pool(std::span<const ParameterSpec> specs, at::ScalarType type, at::Device device)
      : specs_(specs.begin(), specs.end()), type_(type), device_(device) {}

  PooledBuffer take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      entries_.push_back({make_flat_buffer(specs_, type_, device_)});
      free_.push_back(&entries_.back());
    }
    ++live_;
    Entry* entry = free_.back();
    free_.pop_back();
    entry->taken = true;
    come_after_uses(entry);
    return {shared_from_this(), entry};
  }
  void let_go(Entry* entry) {
    const std::lock_guard lock(mutex_);
    end_use(entry);
    entry->taken = false;
    free_if_unused(entry);
  }
  Lease lend(Entry* entry) {
    const std::lock_guard lock(mutex_);
    ++entry->leases;
    return {entry, [pool = shared_from_this()](Entry* lent) { pool->end_lease(lent); }};
  }
  bool is_lent(Entry* entry) {
    const std::lock_guard lock(mutex_);
    if (entry->leases > 0) return true;
    come_after_uses(entry);
    return false;
  }
  size_t live() const {
    const std::lock_guard lock(mutex_);
    return live_;
  }

 private:
  void end_lease(Entry* entry) {
    const std::lock_guard lock(mutex_);
    end_use(entry);
    --entry->leases;
    free_if_unused(entry);
  }
  // Called by destructors, so it must not throw. A device that has failed gives no events.
  void end_use(Entry* entry) {
    try {
      if (DeviceEvent event = DeviceEvent::record(device_)) entry->uses.push_back(std::move(event));
    } catch (const c10::Error&) {
      entry->is_lost = true;
    }
  }
  void come_after_uses(Entry* entry) {
    for (const DeviceEvent& use : entry->uses) use.block(device_);
    entry->uses.clear();
  }
  void free_if_unused(Entry* entry) {
    if (entry->taken || entry->leases > 0 || entry->is_lost) return;
    --live_;
    free_.push_back(entry);
  }

  std::vector<ParameterSpec> specs_;
  at::ScalarType type_;
  at::Device device_;
  mutable std::mutex mutex_;
  std::deque<Entry> entries_;  // a deque, so that entries never move
  std::vector<Entry*> free_;
  size_t live_ = 0;
};

PooledBuffer::~PooledBuffer() {
  if (entry_ != nullptr) pool_->let_go(entry_);
}

FlatBuffer& PooledBuffer::operator*() const {
  return entry_->buffer;
}

Lease PooledBuffer::lend() const {
  return pool_->lend(entry_);
}

bool PooledBuffer::is_lent() const {
  return pool_->is_lent(entry_);
}

BufferPool::BufferPool(std::span<const ParameterSpec> specs, at::ScalarType type, at::Device device)
    : pool_(std::make_shared<PooledBuffer::Pool>(specs, type, device)) {}

PooledBuffer BufferPool::take() {
  return pool_->take();
}

size_t BufferPool::live() const {
  return pool_->live();
}

}  // namespace gyre
