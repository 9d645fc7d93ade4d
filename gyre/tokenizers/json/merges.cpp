#include "gyre/tokenizers/json/merges.h"

#include <algorithm>
#include <bit>

namespace gyre {
namespace {

constexpr size_t kMaxShort = 48;  // up to this many symbols, scanning all pairs is faster than a heap

}  // namespace

Merges::Merges(size_t count) {
  const size_t size = std::bit_ceil(std::max<size_t>(16, 2 * count + 1));
  table_.resize(size);
  shift_ = 64 - std::countr_zero(size);
}

void Merges::add(int32_t left, int32_t right, uint32_t rank, int32_t into) {
  const uint64_t key = key_of(left, right);
  size_t at = slot_of(key);
  while (table_[at].key != kNone && table_[at].key != key) at = (at + 1) & (table_.size() - 1);
  table_[at] = {key, rank, into};
}

const Merges::Entry* Merges::find(int32_t left, int32_t right) const {
  const uint64_t key = key_of(left, right);
  for (size_t at = slot_of(key);; at = (at + 1) & (table_.size() - 1)) {
    if (table_[at].key == key) return &table_[at];
    if (table_[at].key == kNone) return nullptr;
  }
}

void Merges::apply(std::vector<int32_t>& ids, MergeScratch& scratch) const {
  if (ids.size() < 2) return;
  ids.size() <= kMaxShort ? apply_short(ids, scratch) : apply_long(ids, scratch);
}

void Merges::apply_short(std::vector<int32_t>& ids, MergeScratch& scratch) const {
  auto& ranks = scratch.ranks;  // rank of each symbol's merge with its right neighbour
  ranks.resize(ids.size());
  for (size_t i = 0; i + 1 < ids.size(); ++i) ranks[i] = rank_of(ids[i], ids[i + 1]);
  size_t count = ids.size();
  while (count > 1) {
    const auto best = std::min_element(ranks.begin(), ranks.begin() + static_cast<ptrdiff_t>(count) - 1);
    if (*best == kNever) break;
    const auto at = static_cast<size_t>(best - ranks.begin());
    ids[at] = find(ids[at], ids[at + 1])->into;
    std::copy(ids.begin() + static_cast<ptrdiff_t>(at) + 2, ids.begin() + static_cast<ptrdiff_t>(count),
              ids.begin() + static_cast<ptrdiff_t>(at) + 1);
    std::copy(ranks.begin() + static_cast<ptrdiff_t>(at) + 2, ranks.begin() + static_cast<ptrdiff_t>(count),
              ranks.begin() + static_cast<ptrdiff_t>(at) + 1);
    --count;
    if (at > 0) ranks[at - 1] = rank_of(ids[at - 1], ids[at]);
    if (at + 1 < count) ranks[at] = rank_of(ids[at], ids[at + 1]);
  }
  ids.resize(count);
}

void Merges::apply_long(std::vector<int32_t>& ids, MergeScratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto count = static_cast<int32_t>(ids.size());
  symbols.resize(ids.size());
  heap.clear();
  for (int32_t i = 0; i < count; ++i) {
    symbols[static_cast<size_t>(i)] = {ids[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1};
  }
  const auto symbol = [&](int32_t at) -> MergeScratch::Symbol& { return symbols[static_cast<size_t>(at)]; };
  const auto offer = [&](int32_t at) {
    const int32_t after = symbol(at).after;
    const uint32_t rank = after < 0 ? kNever : rank_of(symbol(at).id, symbol(after).id);
    if (rank == kNever) return;
    heap.push_back({rank, at, symbol(at).id, symbol(after).id});
  };
  for (int32_t i = 0; i + 1 < count; ++i) offer(i);
  std::make_heap(heap.begin(), heap.end());
  const auto push = [&](int32_t at) {
    const size_t before = heap.size();
    offer(at);
    if (heap.size() > before) std::push_heap(heap.begin(), heap.end());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const MergeScratch::Candidate best = heap.back();
    heap.pop_back();
    MergeScratch::Symbol& left = symbol(best.at);
    // Skip an outdated candidate: the symbol or its right neighbour has been merged since.
    if (left.id != best.left || left.after < 0 || symbol(left.after).id != best.right) continue;
    MergeScratch::Symbol& right = symbol(left.after);
    left.id = find(best.left, best.right)->into;
    right.id = -1;
    left.after = right.after;
    if (left.after >= 0) symbol(left.after).before = best.at;
    push(best.at);
    if (left.before >= 0) push(left.before);
  }
  ids.clear();
  for (int32_t at = 0; at >= 0; at = symbol(at).after) ids.push_back(symbol(at).id);
}

}  // namespace gyre
