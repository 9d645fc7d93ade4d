#include "gyre/checkpoint/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <string_view>

#include "gyre/checkpoint/format/safetensors_header.h"
#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre {
namespace {

struct TypeName {
  const char* name;
  at::ScalarType type;
};
constexpr TypeName kTypes[] = {{"F32", at::kFloat}, {"BF16", at::kBFloat16}, {"F16", at::kHalf}, {"F64", at::kDouble},
                               {"I64", at::kLong},  {"I32", at::kInt},       {"U8", at::kByte}};

const char* name_of(at::ScalarType type) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == type) return entry.name;
  }
  throw RunError(fmt::format("safetensors: type {} is not supported", at::toString(type)));
}

// Of a name that the header's check has let through.
at::ScalarType type_of(std::string_view name) {
  for (const TypeName& entry : kTypes) {
    if (name == entry.name) return entry.type;
  }
  throw RunError(fmt::format("safetensors: type {} is not supported", name));
}

SafetensorsHeader header_of(const NamedTensors& tensors) {
  SafetensorsHeader header;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t bytes = tensor.nbytes();
    header.tensors.push_back({name, name_of(tensor.scalar_type()), tensor.sizes().vec(), offset, offset + bytes});
    offset += bytes;
  }
  return header;
}

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors, FileSystem& files) {
  FileWriter writer(path, files);
  Checksum checksum;
  const auto put = [&](const void* data, size_t bytes) {
    writer.write(data, bytes);
    checksum.update(data, bytes);
  };
  const std::string header = to_text(header_of(tensors));
  put(header.data(), header.size());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.to(at::kCPU).contiguous();
    if (plain.nbytes() > 0) put(plain.data_ptr(), plain.nbytes());
  }
  writer.close();
  return {writer.bytes_written(), checksum.hex()};
}

NamedTensors read_safetensors(const std::filesystem::path& path, const WantedTensors& wanted) {
  const MappedFile file(path);
  const SafetensorsHeader header = parse_safetensors_header(file.bytes(), path.string());
  const auto data = file.bytes().subspan(header.data_begin);
  NamedTensors tensors;
  for (const TensorEntry& entry : header.tensors) {
    if (wanted && !wanted(entry.name)) continue;
    at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(type_of(entry.type)));
    if (entry.end > entry.begin) std::memcpy(tensor.data_ptr(), data.data() + entry.begin, entry.end - entry.begin);
    tensors.emplace(entry.name, std::move(tensor));
  }
  return tensors;
}

int64_t count_elements(const std::filesystem::path& path) {
  const MappedFile file(path);
  int64_t elements = 0;
  for (const TensorEntry& entry : parse_safetensors_header(file.bytes(), path.string()).tensors) {
    elements += std::accumulate(entry.shape.begin(), entry.shape.end(), int64_t{1}, std::multiplies<>());
  }
  return elements;
}

}  // namespace gyre
