// The merges of byte-pair encoding. In each step the two neighbours in a word with the best merge are joined, the
// leftmost of equals first, until no two neighbours have a merge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gyre {

// Working memory of one thread.
struct MergeScratch {
  struct Symbol {
    int32_t id = 0;
    int32_t before = 0, after = 0;  // neighbours; -1: none
  };
  struct Candidate {
    uint32_t rank = 0;
    int32_t at = 0;  // index of the left symbol
    int32_t left = 0, right = 0;
    bool operator<(const Candidate& other) const {  // reversed, since a heap has its largest first
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  std::vector<int32_t> ids;
  std::vector<uint32_t> ranks;
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

class Merges {
 public:
  explicit Merges(size_t count);
  // Adds the merge of two tokens into a third. It replaces an earlier one of the same two.
  void add(int32_t left, int32_t right, uint32_t rank, int32_t into);
  // Joins the symbols of a word, in place.
  void apply(std::vector<int32_t>& ids, MergeScratch& scratch) const;

 private:
  struct Entry {
    uint64_t key = kNone;
    uint32_t rank = 0;
    int32_t into = 0;
  };
  static constexpr uint64_t kNone = ~uint64_t{0};
  static constexpr uint32_t kNever = ~uint32_t{0};
  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15) >> shift_; }
  const Entry* find(int32_t left, int32_t right) const;
  uint32_t rank_of(int32_t left, int32_t right) const {
    const Entry* entry = find(left, right);
    return entry == nullptr ? kNever : entry->rank;
  }
  void apply_short(std::vector<int32_t>& ids, MergeScratch& scratch) const;
  void apply_long(std::vector<int32_t>& ids, MergeScratch& scratch) const;

  std::vector<Entry> table_;  // open addressing, at most half full
  int shift_;
};

}  // namespace gyre
