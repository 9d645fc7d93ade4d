// The allocator of large CPU tensors in programs that train.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

namespace gyre {

// While it lives, it is libtorch's CPU allocator: large tensors are blocks of one heap (block_heap.h) that all threads
// share. glibc has a heap for each thread, with small blocks between large ones, so what one worker frees is of no use
// to another. Tensors may outlive it. Create it in main or in a test, and only one at a time.
class HostMemory {
 public:
  static constexpr size_t kLarge = size_t{64} << 10;
  // large: tensors of at least this many bytes are in the heap; smaller ones are left to libtorch.
  explicit HostMemory(size_t large = kLarge);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  struct Bytes {
    size_t live = 0;  // in large tensors
    size_t peak = 0;  // the maximum of `live`
    size_t held = 0;  // obtained from the system, to which nothing is returned
  };
  Bytes bytes() const;
  // The bytes of this process's HostMemory; empty if there is none.
  static std::optional<Bytes> of_process();
  // Resets the peak to what is live now.
  void forget_peak();

 private:
  class Allocator;
  std::unique_ptr<Allocator> allocator_;
};

}  // namespace gyre
