// Buffers of one layout that are used again: those of weight versions, and those of gradient windows.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "gyre/tensors/flat_buffer.h"
#include "gyre/tensors/lease.h"

namespace gyre {

// A buffer taken from a pool. Its holder may write to it as long as it is not lent; the pool has it back once the
// holder has let go and every lease has ended. Whoever ends a lease or lets go does so on the thread, and in the
// stream, that used the buffer; the next holder's work on the device comes after theirs.
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

  // Others may read it until their lease ends.
  Lease lend() const;
  // Whether a lease is out. Once the answer is no, what its holders read is behind them on every thread, and this
  // thread's work on the device comes after theirs.
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

  // One that is free, or a new one. What is in it is left from its last use; a new one is zero.
  PooledBuffer take();
  // Buffers that are taken or lent. Any thread.
  size_t live() const;

 private:
  std::shared_ptr<PooledBuffer::Pool> pool_;  // outlives the pool: leases end when they will
};

}  // namespace gyre
