// Where the tensors on the host of a program that trains are.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

namespace gyre {

// While it lives, large tensors on the CPU are blocks of one heap (block_heap.h), whichever thread makes them. glibc
// has a heap for each thread, and in each small blocks between large ones: what one worker frees is of no use to
// another. Tensors that outlive it stay where they are. It stands in a main, or in a test; not two at once.
class HostMemory {
 public:
  static constexpr size_t kLarge = size_t{64} << 10;
  explicit HostMemory(size_t large = kLarge);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  struct Bytes {
    size_t live = 0;  // of large tensors
    size_t peak = 0;  // the most that were live at once
    size_t held = 0;  // of the system, for good
  };
  Bytes bytes() const;
  // Of the one that there is in this process; nothing where tensors are libtorch's own to place.
  static std::optional<Bytes> of_process();
  // The peak begins anew, from what is live.
  void forget_peak();

 private:
  class Allocator;
  std::unique_ptr<Allocator> allocator_;
};

}  // namespace gyre
