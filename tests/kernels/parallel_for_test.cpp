// Tests that loops of gyre's own really run on several threads, and what they then promise.
#include "gyre/kernels/parallel_for.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gyre/kernels/attention.h"
#include "gyre/kernels/linear.h"
#include "support/on_threads.h"

namespace gyre {
namespace {

using testing_support::on_threads;

struct Parts {
  std::vector<std::pair<int64_t, int64_t>> ranges;  // in order
  std::set<std::thread::id> threads;
};
Parts parts_of(int64_t count) {
  std::mutex mutex;
  Parts parts;
  cpu::parallel_for(count, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    parts.ranges.emplace_back(begin, end);
    parts.threads.insert(std::this_thread::get_id());
  });
  std::sort(parts.ranges.begin(), parts.ranges.end());
  return parts;
}

TEST(ParallelFor, EveryNumberIsInOnePartAndEveryPartHasItsThread) {
  for (const int threads : {1, 2, 3}) {
    on_threads(threads, [&] {
      for (const int64_t count : {0, 1, 2, 3, 7, 100}) {
        const Parts parts = parts_of(count);
        int64_t next = 0;
        for (const auto& [begin, end] : parts.ranges) {
          EXPECT_EQ(begin, next);
          EXPECT_GT(end, begin);
          next = end;
        }
        EXPECT_EQ(next, count);
        EXPECT_EQ(parts.ranges.size(), static_cast<size_t>(std::min<int64_t>(threads, count)));
        EXPECT_EQ(parts.threads.size(), parts.ranges.size());
      }
    });
  }
}

TEST(ParallelFor, WithinAPartIsOneCall) {
  on_threads(2, [] { cpu::parallel_for(2, [](int64_t, int64_t) { EXPECT_EQ(parts_of(5).ranges.size(), 1u); }); });
}

TEST(ParallelFor, SmallPassesAreNotDivided) {
  on_threads(1, [] { EXPECT_EQ(cpu::part_count(1 << 20, 1 << 10), 1); });
  on_threads(3, [] {
    EXPECT_EQ(cpu::part_count(1 << 20, 1 << 10), 3);
    EXPECT_EQ(cpu::part_count(2, 1 << 20), 2);
    EXPECT_EQ(cpu::part_count(1 << 15, 1), 2);
    EXPECT_EQ(cpu::part_count(100, 100), 1);
    EXPECT_EQ(cpu::part_count(0, 100), 1);
    cpu::parallel_for(2, [](int64_t, int64_t) { EXPECT_EQ(cpu::part_count(1 << 20, 1 << 10), 1); });
  });
}

TEST(ParallelFor, PartsOfElementsBeginAtBlocks) {
  on_threads(3, [] {
    std::mutex mutex;
    std::vector<std::pair<int64_t, int64_t>> ranges;
    constexpr int64_t kCount = 100'001;
    cpu::for_elements(kCount, [&](int64_t begin, int64_t end) {
      const std::lock_guard lock(mutex);
      ranges.emplace_back(begin, end);
    });
    std::sort(ranges.begin(), ranges.end());
    ASSERT_EQ(ranges.size(), 3u);
    EXPECT_EQ(ranges[0].first, 0);
    EXPECT_EQ(ranges[0].second, ranges[1].first);
    EXPECT_EQ(ranges[1].second, ranges[2].first);
    EXPECT_EQ(ranges[2].second, kCount);
    EXPECT_EQ(ranges[1].first % 1024 + ranges[2].first % 1024, 0);
  });
}

TEST(ParallelFor, WhatAPartThrowsComesOut) {
  on_threads(2, [] {
    const auto fail = [](int64_t, int64_t end) {
      if (end == 4) throw std::runtime_error("in the last part");
    };
    EXPECT_THROW(cpu::parallel_for(4, fail), std::runtime_error);
  });
}

// The threads that multiply for attention, as libtorch's profiler is told of them. Callbacks are plain functions.
std::mutex mutex_of_seen;
std::set<std::thread::id> seen;

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& function) {
  if (std::string_view(function.name()) == "gyre::attention_product") {
    const std::lock_guard lock(mutex_of_seen);
    seen.insert(std::this_thread::get_id());
  }
  return nullptr;
}

TEST(Attention, UsesItsThreads) {
  if (!has_fast_bf16_products()) GTEST_SKIP() << bf16_products();
  const AttentionHeads heads{4, 2};
  const at::Tensor qkv = at::randn({2, 40, 8 * 16}).to(at::kBFloat16),
                   grad = at::randn({2, 40, 4 * 16}).to(at::kBFloat16);
  const auto callback = at::addGlobalCallback(at::RecordFunctionCallback(&see).scopes({at::RecordScope::USER_SCOPE}));
  for (const size_t threads : {1, 2, 4}) {
    on_threads(static_cast<int>(threads), [&] {
      const HeadTensors of = split_heads(qkv, heads);
      seen.clear();
      const Attended attended = attention(of, true);
      EXPECT_EQ(seen.size(), threads);
      seen.clear();
      attention_backward(grad, of, attended, true);
      EXPECT_EQ(seen.size(), threads);
    });
  }
  at::removeCallback(callback);
}

}  // namespace
}  // namespace gyre
