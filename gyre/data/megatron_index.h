// Megatron's indexed datasets: DATA.bin has the tokens of all sequences back to back, DATA.idx says of which type they
// are and how long the sequences: 34 bytes (MMIDIDX, version 1, type, numbers of sequences and documents), int32
// lengths, int64 offsets in bytes, int64 numbers of the documents' first sequences.
#pragma once

#include <cstdint>
#include <string>

#include "gyre/core/files.h"
#include "gyre/data/token_file.h"

namespace gyre {

// Reads and checks the whole index, a stretch at a time; `token_bytes` is the size of the .bin. InputError: not an
// index, cut short, numbers that are no tokens, sequences that do not lie back to back or are not what the .bin has.
TokenLayout read_megatron_index(const InputFile& index, const std::string& origin, uint64_t token_bytes);

}  // namespace gyre
