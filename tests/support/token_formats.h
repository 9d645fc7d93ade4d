// Writes token files in the formats of llm.c, nanoGPT and Megatron, from their descriptions and independently of gyre's
// code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

namespace gyre::testing_support {

using TokenVector = std::vector<int64_t>;

template <typename Number>
void put(std::ofstream& file, int64_t number) {
  const auto written = static_cast<Number>(number);
  file.write(reinterpret_cast<const char*>(&written), sizeof(written));
}

// The format of nanoGPT, and of Megatron's .bin.
template <typename Number>
void write_plain(const std::filesystem::path& path, const TokenVector& tokens) {
  std::ofstream file(path, std::ios::binary);
  for (const int64_t token : tokens) put<Number>(file, token);
}

inline void write_llmc(const std::filesystem::path& path, const TokenVector& tokens, bool wide = false) {
  std::ofstream file(path, std::ios::binary);
  put<int32_t>(file, wide ? 20240801 : 20240520);
  put<int32_t>(file, wide ? 7 : 1);
  put<int32_t>(file, static_cast<int64_t>(tokens.size()));
  for (int i = 3; i < 256; ++i) put<int32_t>(file, 0);
  for (const int64_t token : tokens) wide ? put<uint32_t>(file, token) : put<uint16_t>(file, token);
}

template <typename Number>
uint8_t megatron_code() {
  if (std::is_same_v<Number, uint8_t>) return 1;
  if (std::is_same_v<Number, int8_t>) return 2;
  if (std::is_same_v<Number, int16_t>) return 3;
  if (std::is_same_v<Number, int32_t>) return 4;
  if (std::is_same_v<Number, int64_t>) return 5;
  if (std::is_same_v<Number, double>) return 6;
  if (std::is_same_v<Number, float>) return 7;
  return 8;
}

// Writes PREFIX.bin and PREFIX.idx. documents: the first sequence of each, and the number of sequences.
template <typename Number>
void write_megatron(const std::filesystem::path& prefix, const TokenVector& tokens, const std::vector<int64_t>& lengths,
                    const std::vector<int64_t>& documents) {
  write_plain<Number>(prefix.string() + ".bin", tokens);
  std::ofstream file(prefix.string() + ".idx", std::ios::binary);
  file.write("MMIDIDX\0\0", 9);
  put<uint64_t>(file, 1);
  put<uint8_t>(file, megatron_code<Number>());
  put<uint64_t>(file, static_cast<int64_t>(lengths.size()));
  put<uint64_t>(file, static_cast<int64_t>(documents.size()));
  for (const int64_t length : lengths) put<int32_t>(file, length);
  int64_t offset = 0;
  for (const int64_t length : lengths) {
    put<int64_t>(file, offset);
    offset += length * static_cast<int64_t>(sizeof(Number));
  }
  for (const int64_t first : documents) put<int64_t>(file, first);
}
// The same where every sequence is a document.
template <typename Number>
void write_megatron(const std::filesystem::path& prefix, const TokenVector& tokens,
                    const std::vector<int64_t>& lengths) {
  std::vector<int64_t> documents(lengths.size() + 1);
  std::iota(documents.begin(), documents.end(), 0);
  write_megatron<Number>(prefix, tokens, lengths, documents);
}

}  // namespace gyre::testing_support
