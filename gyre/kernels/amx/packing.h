// Packs the factors of a matrix product into the order in which tiles are loaded. Beyond a matrix's edges zeros are
// packed, so that blocks are always whole.
#pragma once

#include <array>
#include <cstdint>

#include "gyre/kernels/amx/tiles.h"

namespace gyre::amx {

// A mask of the lowest `count` of 32 lanes; all of them if count >= 32, none if count <= 0.
inline __mmask32 lowest_lanes(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : count <= 0 ? __mmask32{0} : (__mmask32{1} << count) - 1;
}

// Transposes a 16 x 16 matrix of 32-bit elements.
GYRE_AMX inline void transpose(std::array<__m512i, 16>& rows) {
  std::array<__m512i, 16> t;
  for (int i = 0; i < 16; i += 4) {  // 4 x 4 within each quarter of four rows
    const __m512i a = _mm512_unpacklo_epi32(rows[i], rows[i + 1]), b = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    const __m512i c = _mm512_unpacklo_epi32(rows[i + 2], rows[i + 3]),
                  d = _mm512_unpackhi_epi32(rows[i + 2], rows[i + 3]);
    t[i] = _mm512_unpacklo_epi64(a, c);
    t[i + 1] = _mm512_unpackhi_epi64(a, c);
    t[i + 2] = _mm512_unpacklo_epi64(b, d);
    t[i + 3] = _mm512_unpackhi_epi64(b, d);
  }
  for (int i = 0; i < 4; ++i) {  // then the quarters
    const __m512i a = _mm512_shuffle_i32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_i32x4(t[i], t[i + 4], 0xdd);
    const __m512i c = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0x88),
                  d = _mm512_shuffle_i32x4(t[i + 8], t[i + 12], 0xdd);
    rows[i] = _mm512_shuffle_i32x4(a, c, 0x88);
    rows[i + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
    rows[i + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
    rows[i + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
  }
}

// Rows k and k + 1 of 32 columns, interleaved element by element: the pairs of the first 16 columns, and of the last
// 16.
struct Pairs {
  __m512i first, second;
};
GYRE_AMX inline Pairs pairs_of(__m512i even, __m512i odd) {
  const __m512i first = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  return {_mm512_permutex2var_epi16(even, first, odd), _mm512_permutex2var_epi16(even, second, odd)};
}

// Each function below packs one step: kStep of the inner dimension for 32 columns of the right factor, or 32 rows of
// the left one, which makes two tiles. Only `count` of the columns or rows, and `inner` of the inner dimension, exist;
// strides are in elements.

// Packs a right factor (k, n).
GYRE_AMX inline void pack_columns(const uint16_t* from, int64_t stride, int64_t count, int64_t inner, uint16_t* to) {
  const __mmask32 lanes = lowest_lanes(count);
  for (int64_t row = 0; row < kStep; row += 2, to += kStep) {
    const __m512i even = _mm512_maskz_loadu_epi16(row < inner ? lanes : 0, from + row * stride);
    const __m512i odd = _mm512_maskz_loadu_epi16(row + 1 < inner ? lanes : 0, from + (row + 1) * stride);
    const Pairs pairs = pairs_of(even, odd);
    _mm512_storeu_si512(to, pairs.first);
    _mm512_storeu_si512(to + kTileElements, pairs.second);
  }
}

GYRE_AMX inline void store_tile(const std::array<__m512i, 16>& rows, uint16_t* to) {
  for (const __m512i& row : rows) {
    _mm512_storeu_si512(to, row);
    to += kStep;
  }
}

// Packs a right factor that is stored transposed, (n, k).
GYRE_AMX inline void pack_transposed_columns(const uint16_t* from, int64_t stride, int64_t count, int64_t inner,
                                             uint16_t* to) {
  const __mmask32 lanes = lowest_lanes(inner);
  for (int64_t half = 0; half < kBlock; half += kTile, to += kTileElements) {
    std::array<__m512i, 16> tile;
    for (int64_t i = 0; i < kTile; ++i) {
      const int64_t column = half + i;
      tile[static_cast<size_t>(i)] = _mm512_maskz_loadu_epi16(column < count ? lanes : 0, from + column * stride);
    }
    transpose(tile);
    store_tile(tile, to);
  }
}

// Packs a left factor (m, k).
GYRE_AMX inline void pack_rows(const uint16_t* from, int64_t stride, int64_t count, int64_t inner, uint16_t* to) {
  const __mmask32 lanes = lowest_lanes(inner);
  for (int64_t row = 0; row < kBlock; ++row, to += kStep) {
    _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(row < count ? lanes : 0, from + row * stride));
  }
}

// Packs a left factor that is stored transposed, (k, m).
GYRE_AMX inline void pack_transposed_rows(const uint16_t* from, int64_t stride, int64_t count, int64_t inner,
                                          uint16_t* to) {
  const __mmask32 lanes = lowest_lanes(count);
  std::array<__m512i, 16> upper, lower;
  for (int64_t pair = 0; pair < kTile; ++pair) {
    const int64_t row = 2 * pair;
    const __m512i even = _mm512_maskz_loadu_epi16(row < inner ? lanes : 0, from + row * stride);
    const __m512i odd = _mm512_maskz_loadu_epi16(row + 1 < inner ? lanes : 0, from + (row + 1) * stride);
    const Pairs pairs = pairs_of(even, odd);
    upper[static_cast<size_t>(pair)] = pairs.first;
    lower[static_cast<size_t>(pair)] = pairs.second;
  }
  transpose(upper);
  transpose(lower);
  store_tile(upper, to);
  store_tile(lower, to + kTileElements);
}

}  // namespace gyre::amx
