// Megatron's indexed datasets: DATA.bin has the tokens of all sequences back to back, DATA.idx has their type and the
// sequences' lengths: a header of 34 bytes (MMIDIDX, version 1, type, numbers of sequences and documents), int32
// lengths, int64 offsets in bytes, int64 index of each document's first sequence. The last of these is no document's,
// but the number of sequences.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/core/files.h"
#include "gyre/data/token_file.h"

namespace gyre {

// Checks the index, reading it in pieces; `token_bytes` is the size of the .bin. Throws InputError if it is not an
// index, is truncated, has a type that tokens cannot have, or its sequences are not back to back or do not match the
// .bin, or its documents do not cover the sequences.
TokenLayout read_megatron_index(const InputFile& index, const std::string& origin, uint64_t token_bytes);

}  // namespace gyre
