// The tiles of AMX, and a block of a product made with them. A tile is 16 rows of 64 bytes. One instruction adds to a
// tile of 16 x 16 fp32 the product of a tile of the left factor, 16 rows of 32 bf16, and one of the right factor, whose
// rows hold pairs: row p has, for each of 16 columns, the elements 2p and 2p + 1 of the inner dimension.
// A block is 32 x 32, four tiles: with two tiles of each factor that uses all eight, and each that is loaded twice.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

// What a function must be compiled for that uses tiles, or the vectors beside them.
#define GYRE_AMX __attribute__((target("amx-tile,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16")))

namespace gyre::amx {

inline constexpr int64_t kTile = 16;                     // rows of a tile, and columns of a result's
inline constexpr int64_t kBlock = 2 * kTile;             // rows and columns of a block
inline constexpr int64_t kStep = 32;                     // of the inner dimension, what one instruction takes
inline constexpr int64_t kTileElements = kTile * kStep;  // bf16

// The compiler does not know that tiles are loaded from memory: what is behind the pointer, and all that others can
// reach, must be there before.
inline void write_out(const void* pointer) {
  __asm__ volatile("" ::"r"(pointer) : "memory");
}

// While it lives the thread's tiles are 16 rows of 64 bytes; then it has none, so that they need not be saved when
// threads change places.
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

// The 32 rows of a left factor for one block: where they lie, or packed.
struct LeftRows {
  const uint16_t* data;
  int64_t stride;  // elements from one row to the next
  int64_t step;    // elements from what one instruction takes to what the next does
  int64_t half;    // elements from the first 16 rows to the others
};

// A block of a result (32, 32) in fp32, rows `stride` elements apart.
struct Block {
  float* data;
  int64_t stride;
};

// Loads the block's sums into tiles 0 to 3, or zeros where it is null.
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

// Adds to tiles 0 to 3 the rows times the 32 columns packed at b: for each step the tile of the first 16 columns, then
// that of the others.
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

GYRE_AMX inline void end_block(const Block& to) {
  const int64_t bytes = to.stride * static_cast<int64_t>(sizeof(float));
  float *upper = to.data, *lower = upper + kTile * to.stride;
  _tile_stored(0, upper, bytes);
  _tile_stored(1, upper + kTile, bytes);
  _tile_stored(2, lower, bytes);
  _tile_stored(3, lower + kTile, bytes);
}

}  // namespace gyre::amx
