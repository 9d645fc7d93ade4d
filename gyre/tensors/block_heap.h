// A heap of large blocks: the smallest free piece that is large enough is taken, and pieces that touch become one. What
// a schedule allocates comes again every microbatch, so little is lost between blocks; and since all threads share one
// heap, a block that one of them frees serves the others.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <utility>

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
  size_t free_pieces() const { return by_address_.size(); }

 private:
  using Pieces = std::map<std::byte*, size_t>;

  bool grow(size_t bytes);
  void add_free(std::byte* piece, size_t bytes);
  void remove(Pieces::iterator piece);

  Pieces by_address_;  // the free ones
  std::set<std::pair<size_t, std::byte*>> by_size_;
  std::map<void*, size_t> chunks_;  // as the system gave them
  size_t held_ = 0;
  std::byte* next_;  // where the next chunk is asked for
};

}  // namespace gyre
