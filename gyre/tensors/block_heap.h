// A heap of large blocks: first fit, and adjacent free pieces are joined. A schedule repeats its allocations every
// microbatch, so fragmentation stays small; and since all threads share one heap, a block that one thread frees can
// serve the others. Best fit would do as well for most runs, but if one block is far larger than the others, as logits
// are, small blocks would fill its place.
// Therefore blocks of 32 MiB and more are put at the end of the last piece that is large enough: small blocks fill the
// heap from its beginning, and leave that place free while the large block is not allocated.
#pragma once

#include <cstddef>
#include <map>

namespace gyre {

// Not thread-safe.
class BlockHeap {
 public:
  BlockHeap();
  ~BlockHeap();
  BlockHeap(const BlockHeap&) = delete;
  BlockHeap& operator=(const BlockHeap&) = delete;

  // A block aligned to 64 bytes; null if the system has no more memory.
  void* take(size_t bytes);
  // `bytes` must be what was passed to take().
  void give_back(void* block, size_t bytes);

  size_t held() const { return held_; }  // bytes obtained from the system; returned only when the heap is destroyed

 private:
  using Pieces = std::map<std::byte*, size_t>;

  bool grow(size_t bytes);
  void add_free(std::byte* piece, size_t bytes);
  Pieces::iterator piece_for(size_t size);

  Pieces free_;                     // address -> size
  std::map<void*, size_t> chunks_;  // memory obtained from the system: address -> size
  size_t held_ = 0;
  std::byte* next_;  // the address at which the next chunk is requested
};

}  // namespace gyre
