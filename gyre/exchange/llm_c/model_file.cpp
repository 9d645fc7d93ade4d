#include "gyre/exchange/llm_c/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr int32_t kMagic = 20240326;
constexpr int32_t kLlamaMagic = 20240803;
constexpr int32_t kFp32Version = 3, kBf16Version = 5;
constexpr int64_t kRowsMultiple = 128;  // llm.c pads the token embedding to a multiple of it
constexpr const char* kActivation = "gelu-tanh";

using Header = std::array<int32_t, kLlmcHeaderBytes / sizeof(int32_t)>;

uint64_t width_of(LlmcType type) {
  return type == LlmcType::Fp32 ? 4 : 2;
}

LlmcType type_of(int32_t version, const std::string& origin) {
  if (version == kFp32Version) return LlmcType::Fp32;
  if (version == kBf16Version) return LlmcType::Bf16;
  throw InputError(
      fmt::format("{}: is an llm.c model of version {}; {} (fp32) and {} (bf16) are read: write it again with a "
                  "current train_gpt2.py",
                  origin, version, kFp32Version, kBf16Version));
}

// What a parameter of a block is called without "blocks.N.", and its shape.
struct BlockParameter {
  const char* name;
  std::vector<int64_t> shape;
};
std::vector<BlockParameter> block_parameters(int64_t width) {
  return {{"norm1.weight", {width}},
          {"norm1.bias", {width}},
          {"attention.qkv.weight", {3 * width, width}},
          {"attention.qkv.bias", {3 * width}},
          {"attention.projection.weight", {width, width}},
          {"attention.projection.bias", {width}},
          {"norm2.weight", {width}},
          {"norm2.bias", {width}},
          {"mlp.in.weight", {4 * width, width}},
          {"mlp.in.bias", {4 * width}},
          {"mlp.out.weight", {width, 4 * width}},
          {"mlp.out.bias", {width}}};
}

uint64_t elements_of(const std::vector<int64_t>& shape) {
  uint64_t elements = 1;
  for (const int64_t size : shape) elements *= static_cast<uint64_t>(size);
  return elements;
}

uint64_t bytes_of(const LlmcHeader& header) {
  uint64_t in_block = 0;
  for (const BlockParameter& parameter : block_parameters(header.width)) in_block += elements_of(parameter.shape);
  const uint64_t outside = elements_of({header.padded_vocabulary + header.context + 2, header.width});
  return kLlmcHeaderBytes + width_of(header.type) * (outside + static_cast<uint64_t>(header.layers) * in_block);
}

void check_sizes(const LlmcHeader& header, const std::string& origin) {
  try {
    check_model(model_of(header));
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: describes a model that gyre does not have: {}", origin, error.what()));
  }
  if (header.vocabulary <= header.padded_vocabulary) return;
  throw InputError(fmt::format("{}: is damaged: by its header the vocabulary is {}, and padded it is {}", origin,
                               header.vocabulary, header.padded_vocabulary));
}

}  // namespace

bool is_llmc_model(std::span<const std::byte> first) {
  int32_t magic = 0;
  if (first.size() < sizeof(magic)) return false;
  std::memcpy(&magic, first.data(), sizeof(magic));
  return magic == kMagic || magic == kLlamaMagic;
}

bool is_llmc_model(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const InputFile file(path);
  std::array<std::byte, sizeof(int32_t)> first{};
  const size_t there = std::min<uint64_t>(first.size(), file.size());
  file.read_at(0, first.data(), there);
  return is_llmc_model(std::span(first).first(there));
}

LlmcHeader parse_llmc_header(std::span<const std::byte> first, uint64_t file_bytes, const std::string& origin) {
  Header fields{};
  if (first.size() < sizeof(fields)) {
    throw InputError(fmt::format("{}: is truncated: it has {} bytes, and the header of an llm.c model has {}", origin,
                                 file_bytes, sizeof(fields)));
  }
  std::memcpy(fields.data(), first.data(), sizeof(fields));
  if (fields[0] == kLlamaMagic) {
    throw InputError(fmt::format(
        "{}: is a Llama of llm.c; of its models gyre reads GPT-2. Import the Llama as Hugging Face has it", origin));
  }
  if (fields[0] != kMagic) throw InputError(fmt::format("{}: is not a model of llm.c", origin));
  const LlmcHeader header{.type = type_of(fields[1], origin),
                          .context = fields[2],
                          .vocabulary = fields[3],
                          .layers = fields[4],
                          .heads = fields[5],
                          .width = fields[6],
                          .padded_vocabulary = fields[7]};
  check_sizes(header, origin);
  const uint64_t needed = bytes_of(header);
  if (file_bytes == needed) return header;
  throw InputError(fmt::format("{}: is {}: its header says {} bytes, the file has {}; bring back the whole file",
                               origin, file_bytes < needed ? "truncated" : "too long", needed, file_bytes));
}

std::string to_bytes(const LlmcHeader& header) {
  Header fields{};
  fields[0] = kMagic;
  fields[1] = header.type == LlmcType::Fp32 ? kFp32Version : kBf16Version;
  size_t next = 2;
  for (const int64_t size :
       {header.context, header.vocabulary, header.layers, header.heads, header.width, header.padded_vocabulary}) {
    fields[next++] = static_cast<int32_t>(size);  // the ranges of [model] fit
  }
  std::string bytes(sizeof(fields), '\0');
  std::memcpy(bytes.data(), fields.data(), sizeof(fields));
  return bytes;
}

std::vector<LlmcTensor> llmc_tensors(const LlmcHeader& header) {
  std::vector<LlmcTensor> tensors;
  uint64_t offset = kLlmcHeaderBytes;
  const auto add = [&](std::string ours, const std::vector<int64_t>& shape, int64_t padding_rows = 0) {
    tensors.push_back({std::move(ours), shape, offset, padding_rows});
    std::vector<int64_t> in_file = shape;
    in_file.front() += padding_rows;
    offset += width_of(header.type) * elements_of(in_file);
  };
  add("embedding.token.weight", {header.vocabulary, header.width}, header.padded_vocabulary - header.vocabulary);
  add("embedding.position.weight", {header.context, header.width});
  for (const BlockParameter& parameter : block_parameters(header.width)) {
    for (int64_t block = 0; block < header.layers; ++block) {
      add(fmt::format("blocks.{}.{}", block, parameter.name), parameter.shape);
    }
  }
  add("head.norm.weight", {header.width});
  add("head.norm.bias", {header.width});
  return tensors;
}

ModelSettings model_of(const LlmcHeader& header) {
  ModelSettings settings;
  settings.kind = "gpt";
  settings.layers = header.layers;
  settings.width = header.width;
  settings.heads = header.heads;
  settings.context = header.context;
  settings.vocabulary = header.vocabulary;
  settings.activation = kActivation;
  settings.tie = true;
  return settings;
}

LlmcHeader llmc_header_of(const ModelSettings& settings, LlmcType type) {
  std::vector<std::string> faults;
  const auto needs = [&](bool holds, const std::string& what) {
    if (!holds) faults.push_back(what);
  };
  needs(settings.kind == "gpt", fmt::format("kind = \"gpt\", not \"{}\"", settings.kind));
  needs(settings.tie, "tie = true");
  needs(settings.activation == kActivation, fmt::format("activation = \"{}\"", kActivation));
  needs(mlp_width(settings) == 4 * settings.width, "mlp_width = 4 * width");
  if (!faults.empty()) {
    throw InputError(fmt::format("llm.c has no such model; it needs [model] {}", join(faults, ", ")));
  }
  const int64_t blocks_of_rows = (settings.vocabulary + kRowsMultiple - 1) / kRowsMultiple;
  return {.type = type,
          .context = settings.context,
          .vocabulary = settings.vocabulary,
          .layers = settings.layers,
          .heads = settings.heads,
          .width = settings.width,
          .padded_vocabulary = blocks_of_rows * kRowsMultiple};
}

}  // namespace gyre
