#include "gyre/kernels/parallel_for.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>

#include <algorithm>

namespace gyre {

// at::parallel_for is a template, and where the compiler is not told of OpenMP it makes one call on one thread. The
// loop of a TensorIterator is in libtorch, with the threads that libtorch was built for. It goes over a tensor without
// contents here: how far behind the first element a part begins says which part it is.
void cpu::parallel_for(int64_t count, const std::function<void(int64_t begin, int64_t end)>& work) {
  if (count <= 0) return;
  if (count == 1 || at::get_num_threads() == 1 || at::in_parallel_region()) return work(0, count);
  const at::Tensor numbered = at::empty({count}, at::kByte);
  const char* const first = static_cast<const char*>(numbered.data_ptr());
  at::TensorIterator::borrowing_nullary_op(numbered).for_each(
      [&](char** data, const int64_t*, int64_t size, int64_t) { work(data[0] - first, data[0] - first + size); },
      /*grain_size=*/1);
}

int64_t cpu::part_count(int64_t rows, int64_t width) {
  constexpr int64_t kLeastElements = 1 << 14;  // some microseconds, as long as a thread takes to begin
  const int64_t threads = at::get_num_threads();
  if (threads == 1 || at::in_parallel_region()) return 1;
  return std::clamp(rows * width / kLeastElements, int64_t{1}, std::min(threads, std::max<int64_t>(rows, 1)));
}

at::Tensor cpu::sum_of_parts(const at::Tensor& sums) {
  return sums.size(0) == 1 ? sums[0] : sums.sum(0);
}

}  // namespace gyre
