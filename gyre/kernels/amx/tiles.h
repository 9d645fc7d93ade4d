// AMX tiles, and how a block of a matrix product is computed with them. A tile is 16 rows of 64 bytes. One instruction
// adds to a tile of 16 x 16 fp32 the product of a tile of the left factor, 16 rows of 32 bf16, and one of the right
// factor, whose rows hold pairs: row p has, for each of 16 columns, the elements 2p and 2p + 1 of the inner dimension.
// A block is 32 x 32, four tiles. With two tiles of each factor that uses all eight tiles, and each loaded tile is used
// twice.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

// Marks functions that use tiles, or the AVX-512 vectors that go with them.
#define GYRE_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))

namespace gyre::amx {

inline constexpr int64_t kTile = 16;                     // rows of a tile, and columns of a result tile
inline constexpr int64_t kBlock = 2 * kTile;             // rows and columns of a block
inline constexpr int64_t kStep = 32;                     // elements of the inner dimension per instruction
inline constexpr int64_t kTileElements = kTile * kStep;  // bf16 elements of a factor's tile

// A compiler barrier. The compiler does not know that tile loads read memory, so all earlier stores, also those through
// `pointer`, must be done before.
inline void write_out(const void* pointer) {
  __asm__ volatile("" ::"r"(pointer) : "memory");
}

// Configures the thread's eight tiles as 16 rows of 64 bytes each. The destructor releases them, so that a context
// switch need not save them.
class Tiles {
 public:
  GYRE_AMX Tiles() {
    struct alignas(64) Shape {
      uint8_t palette = 1, start_row = 0;
      std::array<uint8_t, 14> reserved{};
      std::array<uint16_t, 16> bytes_of_row{};
      std::array<uint8_t, 16> rows{};
    } shape;
    for (size_t tile = 0; tile < 8; ++tile) {
      shape.bytes_of_row[tile] = 64;
      shape.rows[tile] = kTile;
    }
    write_out(&shape);
    _tile_loadconfig(&shape);
  }
  GYRE_AMX ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

// The 32 rows of a left factor for one block, in place or packed.
struct LeftRows {
  const uint16_t* data;
  int64_t stride;  // elements from one row to the next
  int64_t step;    // elements from one instruction's part of a row to the next one's
  int64_t half;    // elements from the first row to row 16
};

// A 32 x 32 block of a result in fp32, with rows `stride` elements apart.
struct Block {
  float* data;
  int64_t stride;
};

// Loads the block's sums into tiles 0 to 3, or zeros if `sums` is null.
GYRE_AMX inline void begin_block(const Block* sums) {
  if (sums == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    return;
  }
  write_out(sums->data);
  const int64_t bytes = sums->stride * static_cast<int64_t>(sizeof(float));
  const float *upper = sums->data, *lower = upper + kTile * sums->stride;
  _tile_loadd(0, upper, bytes);
  _tile_loadd(1, upper + kTile, bytes);
  _tile_loadd(2, lower, bytes);
  _tile_loadd(3, lower + kTile, bytes);
}

// Adds to tiles 0 to 3 the product of `rows` and the 32 columns packed at b, which has for each step the tile of the
// first 16 columns, then that of the last 16.
GYRE_AMX inline void add_product(const LeftRows& rows, const uint16_t* b, int64_t steps) {
  write_out(b);
  const int64_t bytes = rows.stride * static_cast<int64_t>(sizeof(uint16_t));
  const uint16_t *upper = rows.data, *lower = rows.data + rows.half;
  for (int64_t s = 0; s < steps; ++s, upper += rows.step, lower += rows.step, b += 2 * kTileElements) {
    _tile_loadd(6, b, 64);
    _tile_loadd(4, upper, bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + kTileElements, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, lower, bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// Stores tiles 0 to 3 to the block.
GYRE_AMX inline void end_block(const Block& to) {
  const int64_t bytes = to.stride * static_cast<int64_t>(sizeof(float));
  float *upper = to.data, *lower = upper + kTile * to.stride;
  _tile_stored(0, upper, bytes);
  _tile_stored(1, upper + kTile, bytes);
  _tile_stored(2, lower, bytes);
  _tile_stored(3, lower + kTile, bytes);
}

}  // namespace gyre::amx
