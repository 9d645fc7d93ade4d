// Loops whose parts run at the same time, on the threads that ATen's own operations use.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>

namespace gyre::cpu {

// Calls work(begin, end) for consecutive parts of [0, count), one on each of at::get_num_threads() threads. In a part
// of another such loop, or of an operation's, it makes one call. What `work` throws comes out here.
void parallel_for(int64_t count, const std::function<void(int64_t begin, int64_t end)>& work);

// Into how many parts a pass over rows of `width` elements is divided: as many as there are threads here, or fewer
// where a part would be over before its thread has begun.
int64_t part_count(int64_t rows, int64_t width);

// Calls work(part, begin, end) for `parts` consecutive parts of [0, rows), at the same time. Parts depend on nothing
// but these two numbers, so sums of parts, added up in their order, have the same bits for the same number of threads.
template <typename Work>
void for_parts(int64_t parts, int64_t rows, const Work& work) {
  if (parts == 1) return work(int64_t{0}, int64_t{0}, rows);
  parallel_for(parts, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) work(part, rows * part / parts, rows * (part + 1) / parts);
  });
}

// sums: (parts, width). Their sum, (width).
at::Tensor sum_of_parts(const at::Tensor& sums);

// Calls work(begin, end) for parts of a pass over rows of `width` elements.
template <typename Work>
void for_rows(int64_t rows, int64_t width, const Work& work) {
  for_parts(part_count(rows, width), rows, [&](int64_t, int64_t begin, int64_t end) { work(begin, end); });
}

// The same for `count` elements that are not in rows. Parts begin at multiples of a block, so that vectors do not end
// elsewhere than in one pass.
template <typename Work>
void for_elements(int64_t count, const Work& work) {
  constexpr int64_t kBlock = 1024;
  for_rows((count + kBlock - 1) / kBlock, kBlock,
           [&](int64_t begin, int64_t end) { work(begin * kBlock, std::min(end * kBlock, count)); });
}

}  // namespace gyre::cpu
