#include "gyre/tensors/block_heap.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace gyre {
namespace {

constexpr size_t kLine = 64;  // bytes of a cache line
constexpr size_t kLarge = size_t{32} << 20;
constexpr size_t kChunk = size_t{2} << 20;  // memory is requested from the system in multiples of it

size_t rounded_up(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

// Chunks are requested from 2^45 on, the second quarter of a process's address space. If the system maps memory from
// the top, as Linux does, nothing else is placed there, so chunks are adjacent. Otherwise the system places them
// elsewhere.
BlockHeap::BlockHeap() : next_(reinterpret_cast<std::byte*>(uintptr_t{1} << 45)) {}

BlockHeap::~BlockHeap() {
  for (const auto& [chunk, bytes] : chunks_) munmap(chunk, bytes);
}

void* BlockHeap::take(size_t bytes) {
  const size_t size = rounded_up(bytes, kLine);
  auto piece = piece_for(size);
  if (piece == free_.end()) {
    if (!grow(size)) return nullptr;
    piece = piece_for(size);
  }
  const auto [begin, room] = *piece;
  if (size >= kLarge) {
    piece->second -= size;
    if (room == size) free_.erase(piece);
    return begin + (room - size);
  }
  free_.erase(piece);
  if (room > size) free_.emplace(begin + size, room - size);
  return begin;
}

BlockHeap::Pieces::iterator BlockHeap::piece_for(size_t size) {
  const auto is_enough = [size](const auto& piece) { return piece.second >= size; };
  if (size < kLarge) return std::find_if(free_.begin(), free_.end(), is_enough);
  const auto last = std::find_if(free_.rbegin(), free_.rend(), is_enough);
  return last == free_.rend() ? free_.end() : std::prev(last.base());
}

void BlockHeap::give_back(void* block, size_t bytes) {
  add_free(static_cast<std::byte*>(block), rounded_up(bytes, kLine));
}

// Grows only by what the free piece at the end of the heap lacks. Room that is there before it is needed would be taken
// by smaller blocks, and a large block would then need more.
bool BlockHeap::grow(size_t bytes) {
  size_t missing = bytes;
  if (!free_.empty()) {
    const auto& [last, size] = *free_.rbegin();
    if (last + size == next_) missing -= size;
  }
  const size_t size = rounded_up(missing, kChunk);
  void* const chunk = mmap(next_, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (chunk == MAP_FAILED) return false;
  const bool is_enough = chunk == next_ || size >= bytes;
  chunks_.emplace(chunk, size);
  held_ += size;
  next_ = static_cast<std::byte*>(chunk) + size;
  add_free(static_cast<std::byte*>(chunk), size);
  return is_enough || grow(bytes);
}

void BlockHeap::add_free(std::byte* piece, size_t bytes) {
  auto after = free_.lower_bound(piece);
  if (after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == piece) {
      piece = before->first;
      bytes += before->second;
      free_.erase(before);
    }
  }
  if (after != free_.end() && piece + bytes == after->first) {
    bytes += after->second;
    free_.erase(after);
  }
  free_.emplace(piece, bytes);
}

}  // namespace gyre
