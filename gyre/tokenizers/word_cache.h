// A cache of the tokens of words, since text repeats words. Each encoding thread uses one of bounded size; its content
// affects no result. Also a pool that lends such scratch objects to threads.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace gyre {

class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 24, kMaxTokens = 7;

  // Appends the tokens of `word`, from the cache or by calling encode(word, tokens).
  template <typename Encode>
  void encode(std::string_view word, std::vector<int32_t>& tokens, Encode&& encode) {
    if (word.size() > kMaxWordBytes) return encode(word, tokens);
    // The rest of the key is zero, so keys of one length differ only in the words' bytes.
    std::array<char, kMaxWordBytes> key{};
    std::memcpy(key.data(), word.data(), word.size());
    std::array<uint64_t, kMaxWordBytes / 8> parts{};
    std::memcpy(parts.data(), key.data(), key.size());
    uint64_t hash = word.size();
    for (const uint64_t part : parts) hash = (hash ^ part) * 0x9E3779B97F4A7C15, hash ^= hash >> 29;
    Slot& slot = slots_[hash >> (64 - kBits)];
    if (slot.length == word.size() && slot.key == key) {
      tokens.insert(tokens.end(), slot.tokens.data(), slot.tokens.data() + slot.count);
      return;
    }
    const size_t before = tokens.size();
    encode(word, tokens);
    const size_t count = tokens.size() - before;
    if (count > kMaxTokens || word.empty()) return;
    slot.key = key;
    slot.length = static_cast<uint8_t>(word.size());
    slot.count = static_cast<uint8_t>(count);
    std::copy_n(tokens.data() + before, count, slot.tokens.data());
  }

 private:
  static constexpr int kBits = 15;
  struct Slot {
    std::array<char, kMaxWordBytes> key{};
    uint8_t length = 0, count = 0;  // length 0: the slot is empty
    std::array<int32_t, kMaxTokens> tokens{};
  };
  std::vector<Slot> slots_ = std::vector<Slot>(size_t{1} << kBits);
};

// Scratch objects for threads that encode, each lent to one thread at a time and reused later.
template <typename Scratch>
class ScratchPool {
 public:
  class Lease {
   public:
    Lease(ScratchPool& pool, std::unique_ptr<Scratch> scratch) : pool_(pool), scratch_(std::move(scratch)) {}
    ~Lease() {
      const std::lock_guard lock(pool_.mutex_);
      pool_.free_.push_back(std::move(scratch_));
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Scratch* operator->() const { return scratch_.get(); }
    Scratch& operator*() const { return *scratch_; }

   private:
    ScratchPool& pool_;
    std::unique_ptr<Scratch> scratch_;
  };

  Lease lend() {
    std::unique_ptr<Scratch> scratch;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        scratch = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!scratch) scratch = std::make_unique<Scratch>();
    return Lease(*this, std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace gyre
