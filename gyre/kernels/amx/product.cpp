#include "gyre/kernels/amx/product.h"

#include <ATen/ATen.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "gyre/kernels/amx/packing.h"
#include "gyre/kernels/amx/tiles.h"
#include "gyre/kernels/parallel_for.h"

// Blocking of the matrix product. A packed part of the right factor stays in the core's L2 cache (2 MB on CPUs with
// AMX) while the rows of the left factor are multiplied with it. Packing costs little beside that, so nothing packed is
// kept for later products.
namespace gyre::amx {
namespace {

constexpr int64_t kMaxInner = 512;                // elements of the inner dimension in one part
constexpr int64_t kMaxPacked = int64_t{1} << 19;  // elements of one part of the right factor
constexpr int64_t kMaxRows = 1024;  // rows of one part; bounds the sums kept if there are several inner parts

int64_t round_up(int64_t count, int64_t unit) {
  return (count + unit - 1) / unit * unit;
}
// Length of each part if `length` is cut into nearly equal parts of at most `max_length`, rounded up to whole `unit`s.
int64_t part_length(int64_t length, int64_t max_length, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, (length + max_length - 1) / max_length);
  return round_up((length + parts - 1) / parts, unit);
}

// A thread's working memory, kept between calls. Buffers only grow.
class Workspace {
 public:
  uint16_t* right(int64_t elements) { return grown<c10::BFloat16, uint16_t>(right_, elements, at::kBFloat16); }
  uint16_t* left(int64_t elements) { return grown<c10::BFloat16, uint16_t>(left_, elements, at::kBFloat16); }
  float* sums(int64_t elements) { return grown<float, float>(sums_, elements, at::kFloat); }

 private:
  template <typename Element, typename As>
  static As* grown(at::Tensor& memory, int64_t elements, at::ScalarType type) {
    if (!memory.defined() || memory.numel() < elements) memory = at::empty({elements}, type);
    return reinterpret_cast<As*>(memory.data_ptr<Element>());
  }
  at::Tensor right_, left_, sums_;
};
thread_local Workspace workspace;

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
// The part of `whole` that begins at `begin`, `length` long or up to the end of `whole`.
Range part_at(const Range& whole, int64_t begin, int64_t length) {
  return {begin, std::min(begin + length, whole.end)};
}

// Packed elements of a panel: 32 rows or columns with the whole of `inner`.
int64_t panel_length(const Range& inner) {
  return kBlock * round_up(inner.size(), kStep);
}

// Packs panels of 32 columns. Memory is read along its rows.
GYRE_AMX void pack_right(const Factor& b, const Range& columns, const Range& inner, uint16_t* to) {
  const int64_t panel = panel_length(inner);
  if (b.transposed) {
    for (int64_t first = columns.begin; first < columns.end; first += kBlock) {
      for (int64_t k = inner.begin; k < inner.end; k += kStep, to += 2 * kTileElements) {
        pack_transposed_columns(b.data + first * b.stride + k, b.stride, columns.end - first, inner.end - k, to);
      }
    }
    return;
  }
  for (int64_t k = inner.begin; k < inner.end; k += kStep, to += 2 * kTileElements) {
    uint16_t* panel_to = to;
    for (int64_t first = columns.begin; first < columns.end; first += kBlock, panel_to += panel) {
      pack_columns(b.data + k * b.stride + first, b.stride, columns.end - first, inner.end - k, panel_to);
    }
  }
}

// Packs panels of 32 rows, for when tiles cannot be loaded in place. Memory is read along its rows.
GYRE_AMX void pack_left(const Factor& a, const Range& rows, const Range& inner, uint16_t* to) {
  const int64_t panel = panel_length(inner);
  for (int64_t k = inner.begin; k < inner.end; k += kStep, to += 2 * kTileElements) {
    uint16_t* panel_to = to;
    for (int64_t first = rows.begin; first < rows.end; first += kBlock, panel_to += panel) {
      if (a.transposed) {
        pack_transposed_rows(a.data + k * a.stride + first, a.stride, rows.end - first, inner.end - k, panel_to);
      } else {
        pack_rows(a.data + first * a.stride + k, a.stride, rows.end - first, inner.end - k, panel_to);
      }
    }
  }
}

// The rows of a left factor, block by block: in place if possible, else packed, kPanels panels at a time.
class LeftPanels {
 public:
  LeftPanels(const Factor& a, const Range& rows, const Range& inner)
      : a_(a), rows_(rows), inner_(inner), packed_(workspace.left(kPanels * panel_length(inner))) {}

  GYRE_AMX LeftRows at(const Range& rows) {
    const bool loads_in_place = !a_.transposed && rows.size() == kBlock && inner_.size() % kStep == 0;
    if (loads_in_place) return {a_.data + rows.begin * a_.stride + inner_.begin, a_.stride, kStep, kTile * a_.stride};
    if (rows.begin >= packed_to_) {
      packed_from_ = rows.begin;
      packed_to_ = std::min(rows.begin + kPanels * kBlock, rows_.end);
      pack_left(a_, {packed_from_, packed_to_}, inner_, packed_);
    }
    const int64_t panel = (rows.begin - packed_from_) / kBlock;
    return {packed_ + panel * panel_length(inner_), kStep, 2 * kTileElements, kTileElements};
  }

 private:
  static constexpr int64_t kPanels = 4;

  Factor a_;
  Range rows_, inner_;
  uint16_t* packed_;
  int64_t packed_from_ = 0, packed_to_ = 0;
};

// A range of the result's rows and columns: a block, cut off at the result's edges, or a larger part.
struct Place {
  Range rows, columns;
  bool is_whole() const { return rows.size() == kBlock && columns.size() == kBlock; }
};

// The two result classes say where a block's sums are (`sums_of`), whether these hold values to add to when a part of
// the inner dimension begins (`holds`), and what to do when the part ends (`finish`).

// A bf16 result: sums are fp32 until the inner dimension is complete, then rounded once.
class RoundedResult {
 public:
  // c: element (row, column) is at row * row_stride + column * column_stride, one of which is 1. The bias runs along
  // the dimension whose stride is 1.
  struct Memory {
    uint16_t* c;
    int64_t row_stride, column_stride;
    const uint16_t* bias;
  };
  // keeps_sums: the inner dimension has several parts, so the sums of a part of `rows` x `columns` are kept between
  // them.
  RoundedResult(const Memory& memory, bool keeps_sums, int64_t rows, int64_t columns)
      : memory_(memory),
        keeps_sums_(keeps_sums),
        sums_{workspace.sums(keeps_sums ? rows * columns : kBlock * kBlock), keeps_sums ? columns : kBlock} {}

  Block sums_of(const Place& place, const Place& part) const {
    if (!keeps_sums_) return sums_;
    const int64_t row = place.rows.begin - part.rows.begin, column = place.columns.begin - part.columns.begin;
    return {sums_.data + row * sums_.stride + column, sums_.stride};
  }
  bool holds(const Place&, bool first) const { return !first; }

  GYRE_AMX void finish(const Place& place, const Block& sums, bool, bool last) const {
    if (!last) return;
    if (memory_.column_stride == 1) {
      write_rows(place, sums);
    } else {
      write_columns(place, sums);
    }
  }

 private:
  uint16_t* at(const Place& place) const {
    return memory_.c + place.rows.begin * memory_.row_stride + place.columns.begin * memory_.column_stride;
  }

  GYRE_AMX void write_rows(const Place& place, const Block& sums) const {
    const __mmask32 lanes = lowest_lanes(place.columns.size());
    __m512 first_bias = _mm512_setzero_ps(), second_bias = first_bias;
    if (memory_.bias != nullptr) {
      const __m512i both = _mm512_maskz_loadu_epi16(lanes, memory_.bias + place.columns.begin);
      first_bias = widened(_mm512_castsi512_si256(both));
      second_bias = widened(_mm512_extracti64x4_epi64(both, 1));
    }
    const float* from = sums.data;
    uint16_t* to = at(place);
    for (int64_t row = 0; row < place.rows.size(); ++row, from += sums.stride, to += memory_.row_stride) {
      const __m512 first = _mm512_add_ps(_mm512_loadu_ps(from), first_bias);
      const __m512 second = _mm512_add_ps(_mm512_loadu_ps(from + kTile), second_bias);
      _mm512_mask_storeu_epi16(to, lanes, rounded(first, second));
    }
  }

  // For a transposed result: gathers each column from the block's rows.
  GYRE_AMX void write_columns(const Place& place, const Block& sums) const {
    const __mmask32 lanes = lowest_lanes(place.rows.size());
    __m512i both_bias = _mm512_setzero_si512();
    if (memory_.bias != nullptr) both_bias = _mm512_maskz_loadu_epi16(lanes, memory_.bias + place.rows.begin);
    const __m512 first_bias = widened(_mm512_castsi512_si256(both_bias)),
                 second_bias = widened(_mm512_extracti64x4_epi64(both_bias, 1));
    const __m512i numbers = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i rows = _mm512_mullo_epi32(numbers, _mm512_set1_epi32(static_cast<int>(sums.stride)));
    const float* from = sums.data;
    uint16_t* to = at(place);
    for (int64_t column = 0; column < place.columns.size(); ++column, ++from, to += memory_.column_stride) {
      const __m512 first = _mm512_add_ps(_mm512_i32gather_ps(rows, from, sizeof(float)), first_bias);
      const __m512 second =
          _mm512_add_ps(_mm512_i32gather_ps(rows, from + kTile * sums.stride, sizeof(float)), second_bias);
      _mm512_mask_storeu_epi16(to, lanes, rounded(first, second));
    }
  }

  GYRE_AMX static __m512 widened(__m256i words) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(words), 16));
  }
  GYRE_AMX static __m512i rounded(__m512 first, __m512 second) {
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  }

  Memory memory_;
  bool keeps_sums_;
  Block sums_;
};

// An fp32 result: sums are in the result itself, except for blocks at its edges, which are summed apart and then added.
class WideResult {
 public:
  WideResult(const Sizes& sizes, bool adds, float* c)
      : c_(c), stride_(sizes.n), adds_(adds), edge_{workspace.sums(kBlock * kBlock), kBlock} {}

  Block sums_of(const Place& place, const Place&) const { return place.is_whole() ? Block{at(place), stride_} : edge_; }
  bool holds(const Place& place, bool first) const { return place.is_whole() && (adds_ || !first); }

  GYRE_AMX void finish(const Place& place, const Block& sums, bool first, bool) const {
    if (place.is_whole()) return;
    const __mmask32 lanes = lowest_lanes(place.columns.size());
    const auto low_lanes = static_cast<__mmask16>(lanes), high_lanes = static_cast<__mmask16>(lanes >> kTile);
    const float* from = sums.data;
    float* to = at(place);
    for (int64_t row = place.rows.begin; row < place.rows.end; ++row, from += sums.stride, to += stride_) {
      __m512 low = _mm512_loadu_ps(from), high = _mm512_loadu_ps(from + kTile);
      if (adds_ || !first) {
        low = _mm512_add_ps(low, _mm512_maskz_loadu_ps(low_lanes, to));
        high = _mm512_add_ps(high, _mm512_maskz_loadu_ps(high_lanes, to + kTile));
      }
      _mm512_mask_storeu_ps(to, low_lanes, low);
      _mm512_mask_storeu_ps(to + kTile, high_lanes, high);
    }
  }

 private:
  float* at(const Place& place) const { return c_ + place.rows.begin * stride_ + place.columns.begin; }

  float* c_;
  int64_t stride_;
  bool adds_;
  Block edge_;
};

// Lengths of the parts into which a product is cut.
struct Parts {
  int64_t inner, columns, rows;
  Parts(const Sizes& sizes, const Place& whole)
      : inner(part_length(sizes.k, kMaxInner, kStep)),
        columns(part_length(whole.columns.size(), kMaxPacked / inner, kBlock)),
        rows(part_length(whole.rows.size(), kMaxRows, kBlock)) {}
};

// One block of the result, for one part of the inner dimension. `first`, `last`: whether the part is the first or last.
template <typename Result>
GYRE_AMX void multiply_block(const LeftRows& rows, const uint16_t* columns, int64_t steps, const Place& place,
                             const Place& part, bool first, bool last, const Result& result) {
  const Block sums = result.sums_of(place, part);
  begin_block(result.holds(place, first) ? &sums : nullptr);
  add_product(rows, columns, steps);
  end_block(sums);
  result.finish(place, sums, first, last);
}

// A part of the result, for the whole inner dimension. The packed part of the right factor fits the L2 cache.
template <typename Result>
GYRE_AMX void multiply_part(const Sizes& sizes, const Factor& a, const Factor& b, const Parts& parts, const Place& part,
                            const Result& result) {
  uint16_t* right = workspace.right(parts.columns * parts.inner);
  for (int64_t k = 0; k < sizes.k; k += parts.inner) {
    const Range inner = part_at({0, sizes.k}, k, parts.inner);
    const int64_t steps = round_up(inner.size(), kStep) / kStep;
    pack_right(b, part.columns, inner, right);
    LeftPanels left(a, part.rows, inner);
    for (int64_t row = part.rows.begin; row < part.rows.end; row += kBlock) {
      const Range rows = part_at(part.rows, row, kBlock);
      const LeftRows left_rows = left.at(rows);
      const uint16_t* columns = right;
      for (int64_t column = part.columns.begin; column < part.columns.end; column += kBlock) {
        const Place place{rows, part_at(part.columns, column, kBlock)};
        multiply_block(left_rows, columns, steps, place, part, k == 0, inner.end == sizes.k, result);
        columns += steps * 2 * kTileElements;
      }
    }
  }
}

template <typename Result>
GYRE_AMX void multiply_place(const Sizes& sizes, const Factor& a, const Factor& b, const Parts& parts,
                             const Place& whole, const Result& result) {
  const Tiles tiles;
  for (int64_t row = whole.rows.begin; row < whole.rows.end; row += parts.rows) {
    for (int64_t column = whole.columns.begin; column < whole.columns.end; column += parts.columns) {
      const Place part{part_at(whole.rows, row, parts.rows), part_at(whole.columns, column, parts.columns)};
      multiply_part(sizes, a, b, parts, part, result);
    }
  }
}

// Divides the longer side of the result among the threads, which call work(place) for their places.
template <typename Work>
void for_places(const Sizes& sizes, const Work& work) {
  const bool by_rows = sizes.m > sizes.n;
  const int64_t length = by_rows ? sizes.m : sizes.n;
  cpu::parallel_for((length + kBlock - 1) / kBlock, [&](int64_t begin, int64_t end) {
    const Range range = part_at({0, length}, begin * kBlock, (end - begin) * kBlock);
    work(by_rows ? Place{range, {0, sizes.n}} : Place{{0, sizes.m}, range});
  });
}

bool ask_for_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kBf16 = 1U << 22, kTiles = 1U << 24;  // bits of EDX, CPUID leaf 7
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  if ((d & kBf16) == 0 || (d & kTiles) == 0 || !__builtin_cpu_supports("avx512bf16")) return false;
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
}

}  // namespace

bool cpu_has_tiles() {
  static const bool has = ask_for_tiles();
  return has;
}

void multiply(const Sizes& sizes, const Factor& a, const Factor& b, const uint16_t* bias, uint16_t* c) {
  // With few rows the transpose is computed, c^T = b^T a^T: then a is packed, and b, which is larger, is read in place.
  // Not with a single column: both strides of c would be 1, and they say along which of them the bias runs.
  const bool transposes = sizes.m <= kBlock && sizes.n > 1 && b.transposed && !a.transposed;
  const Sizes oriented = transposes ? Sizes{sizes.n, sizes.m, sizes.k} : sizes;
  const Factor left = transposes ? Factor{b.data, b.stride, false} : a,
               right = transposes ? Factor{a.data, a.stride, true} : b;
  const RoundedResult::Memory memory{c, transposes ? 1 : sizes.n, transposes ? sizes.n : 1, bias};
  for_places(oriented, [&](const Place& place) {
    const Parts parts(oriented, place);
    const bool keeps_sums = parts.inner < oriented.k;
    multiply_place(oriented, left, right, parts, place, RoundedResult(memory, keeps_sums, parts.rows, parts.columns));
  });
}

void multiply(const Sizes& sizes, const Factor& a, const Factor& b, bool adds, float* c) {
  for_places(sizes, [&](const Place& place) {
    multiply_place(sizes, a, b, Parts(sizes, place), place, WideResult(sizes, adds, c));
  });
}

}  // namespace gyre::amx
