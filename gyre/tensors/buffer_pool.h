// A pool of reusable buffers of one layout: for weight versions, and for gradient windows.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "gyre/tensors/flat_buffer.h"
#include "gyre/tensors/lease.h"

namespace gyre {

// A buffer taken from a pool. Its holder may write to it while it is not lent. It returns to the pool once the holder
// has destroyed this object and every lease has ended. Both must happen on the thread, and in the stream, that used the
// buffer; the next holder's work on the device is ordered after theirs.
class PooledBuffer {
 public:
  class Pool;
  struct Entry;

  PooledBuffer() = default;
  PooledBuffer(std::shared_ptr<Pool> pool, Entry* entry) : pool_(std::move(pool)), entry_(entry) {}
  PooledBuffer(PooledBuffer&& other) noexcept { swap(other); }
  PooledBuffer& operator=(PooledBuffer&& other) noexcept {
    PooledBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~PooledBuffer();

  explicit operator bool() const { return entry_ != nullptr; }
  FlatBuffer& operator*() const;
  FlatBuffer* operator->() const { return &**this; }

  // The holder of the lease may read the buffer until the lease ends.
  Lease lend() const;
  // Whether there is a lease. Once the answer is no, all reads under leases are complete on every thread, and this
  // thread's later work on the device is ordered after them.
  bool is_lent() const;

 private:
  void swap(PooledBuffer& other) noexcept {
    pool_.swap(other.pool_);
    std::swap(entry_, other.entry_);
  }

  std::shared_ptr<Pool> pool_;
  Entry* entry_ = nullptr;
};

class BufferPool {
 public:
  BufferPool(std::span<const ParameterSpec> specs, at::ScalarType type, at::Device device);

  // A free buffer, or a new one. A reused buffer has the contents of its last use; a new one is zero.
  PooledBuffer take();
  // The number of buffers that are taken or lent. May be called on any thread.
  size_t live() const;

 private:
  std::shared_ptr<PooledBuffer::Pool> pool_;  // shared with buffers and leases, which may outlive this object
};

}  // namespace gyre
