// A heap of large blocks: the first free piece that is large enough is taken, and pieces that touch become one. What a
// schedule allocates comes again every microbatch, so little is lost between blocks; and since all threads share one
// heap, a block that one of them frees serves the others. The smallest piece instead of the first would do as well for
// most runs, but where one block is far larger than the others, as logits are, its place is filled with small ones.
// Such blocks, of 32 MiB and more, lie at the end of the last piece that is large enough: small ones fill the heap from
// its beginning, and leave that place free while the large one is away.
#pragma once

#include <cstddef>
#include <map>

namespace gyre {

// Not for several threads at once.
class BlockHeap {
 public:
  BlockHeap();
  ~BlockHeap();
  BlockHeap(const BlockHeap&) = delete;
  BlockHeap& operator=(const BlockHeap&) = delete;

  // At a multiple of 64 bytes; null where the system has no more.
  void* take(size_t bytes);
  // `bytes` as it was taken with.
  void give_back(void* block, size_t bytes);

  size_t held() const { return held_; }  // of the system, which gets nothing back before the heap ends

 private:
  using Pieces = std::map<std::byte*, size_t>;

  bool grow(size_t bytes);
  void add_free(std::byte* piece, size_t bytes);
  Pieces::iterator piece_for(size_t size);

  Pieces free_;                     // by address: their sizes
  std::map<void*, size_t> chunks_;  // as the system gave them
  size_t held_ = 0;
  std::byte* next_;  // where the next chunk is asked for
};

}  // namespace gyre
