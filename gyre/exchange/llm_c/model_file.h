// Model files of llm.c, such as gpt2_124M.bin and model_00019560.bin: a header of 256 little-endian int32, then all
// weights of a GPT-2 back to back. Each tensor holds a parameter of all blocks; the matrices are (out, in), as gyre's.
// Free of torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "gyre/model/settings/model_settings.h"

namespace gyre {

inline constexpr size_t kLlmcHeaderBytes = 1024;

// All weights of a file have one type. Version 3 of the format has fp32, version 5 bf16.
enum class LlmcType { Fp32, Bf16 };

struct LlmcHeader {
  LlmcType type = LlmcType::Fp32;
  int64_t context = 0;
  int64_t vocabulary = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t width = 0;
  int64_t padded_vocabulary = 0;  // rows of the token embedding; those beyond the vocabulary stand for no token

  bool operator==(const LlmcHeader&) const = default;
};

// A parameter of gyre in such a file.
struct LlmcTensor {
  std::string ours;
  std::vector<int64_t> shape;  // of ours
  uint64_t offset = 0;         // of its first byte in the file
  int64_t padding_rows = 0;    // that follow it in the file
};

// Whether a file that begins with these bytes says that it is a model of llm.c's, of any version.
bool is_llmc_model(std::span<const std::byte> first);
// The same of a file. False if there is none, or if it is not a regular file.
bool is_llmc_model(const std::filesystem::path& path);

// first: the first bytes of the file, at least the header if the file has it. Throws InputError for another version,
// for sizes of a model that gyre does not have, and if the file is shorter or longer than its header says.
LlmcHeader parse_llmc_header(std::span<const std::byte> first, uint64_t file_bytes, const std::string& origin);
// The inverse: the bytes of the header.
std::string to_bytes(const LlmcHeader& header);

// In the order in which they are in the file.
std::vector<LlmcTensor> llmc_tensors(const LlmcHeader& header);

ModelSettings model_of(const LlmcHeader& header);
// Throws InputError, saying why, if llm.c has no such model. Without biases, those in the file are zeros.
LlmcHeader llmc_header_of(const ModelSettings& settings, LlmcType type);

}  // namespace gyre
