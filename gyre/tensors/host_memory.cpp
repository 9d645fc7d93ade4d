#include "gyre/tensors/host_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "gyre/tensors/block_heap.h"

namespace gyre {
namespace {

class Heap {
 public:
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    void* const data = blocks_.take(bytes);
    if (data == nullptr) return nullptr;
    taken_.emplace(data, bytes);
    live_ += bytes;
    peak_ = std::max(peak_, live_);
    return data;
  }
  // Returns false if the block is not from this heap.
  bool give_back(void* data) {
    const std::lock_guard lock(mutex_);
    const auto block = taken_.find(data);
    if (block == taken_.end()) return false;
    blocks_.give_back(data, block->second);
    live_ -= block->second;
    taken_.erase(block);
    return true;
  }
  HostMemory::Bytes bytes() const {
    const std::lock_guard lock(mutex_);
    return {live_, peak_, blocks_.held()};
  }
  void forget_peak() {
    const std::lock_guard lock(mutex_);
    peak_ = live_;
  }

 private:
  mutable std::mutex mutex_;
  BlockHeap blocks_;
  std::unordered_map<void*, size_t> taken_;
  size_t live_ = 0, peak_ = 0;
};

// libtorch frees memory by its address alone, and tensors may outlive main, so the process has one heap, which is never
// destroyed.
Heap& heap() {
  static Heap& only = *std::make_unique<Heap>().release();
  return only;
}

constexpr uint8_t kPriority = 255;  // above whatever a library has set

}  // namespace

class HostMemory::Allocator final : public c10::Allocator {
 public:
  explicit Allocator(size_t large) : large_(large) {}

  // No `override` here: libtorch 2.3 made allocate() non-const and added copy_data(). Both variants are defined, and
  // each version of libtorch calls its own.
  c10::DataPtr allocate(size_t bytes) const {
    void* const data = bytes < large_ ? nullptr : heap().take(bytes);
    // If the heap has no memory, libtorch's allocator tries, and reports the error.
    if (data == nullptr) return libtorch->allocate(bytes);
    return {data, data, &free, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DataPtr allocate(size_t bytes) { return std::as_const(*this).allocate(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const { std::memcpy(to, from, bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &free; }

  static inline c10::Allocator* const libtorch = c10::GetDefaultCPUAllocator();

 private:
  static void free(void* data) {
    if (!heap().give_back(data)) libtorch->raw_deallocate(data);
  }

  size_t large_;
};

HostMemory::HostMemory(size_t large) : allocator_(std::make_unique<Allocator>(large)) {
  c10::SetCPUAllocator(allocator_.get(), kPriority);
}

HostMemory::~HostMemory() {
  c10::SetCPUAllocator(Allocator::libtorch, kPriority);
}

HostMemory::Bytes HostMemory::bytes() const {
  return heap().bytes();
}

std::optional<HostMemory::Bytes> HostMemory::of_process() {
  if (dynamic_cast<const Allocator*>(c10::GetCPUAllocator()) == nullptr) return std::nullopt;
  return heap().bytes();
}

void HostMemory::forget_peak() {
  heap().forget_peak();
}

}  // namespace gyre
