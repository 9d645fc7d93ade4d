#include "gyre/checkpoint/safetensors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <memory>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/stopped.h"
#include "gyre/core/text.h"
#include "gyre/tensors/shape.h"

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

// The format has more types than are read here.
at::ScalarType type_of(const TensorEntry& tensor, const std::string& origin) {
  for (const TypeName& entry : kTypes) {
    if (tensor.type == entry.name) return entry.type;
  }
  throw InputError(
      fmt::format("{}: '{}' has the type {}, which gyre does not read", origin, printable(tensor.name), tensor.type));
}

SafetensorsHeader header_of(const DeclaredTensors& tensors, const std::map<std::string, std::string>& metadata) {
  SafetensorsHeader header;
  header.metadata = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t bytes = bytes_of(tensor);
    header.tensors.push_back({name, name_of(tensor.type), tensor.shape, offset, offset + bytes});
    offset += bytes;
  }
  return header;
}

}  // namespace

uint64_t bytes_of(const DeclaredTensor& tensor) {
  return static_cast<uint64_t>(numel(tensor.shape)) * c10::elementSize(tensor.type);
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : origin_(path.string()), file_(path), header_(parse_safetensors_header(file_.bytes(), origin_)) {}

at::Tensor SafetensorsFile::view(const TensorEntry& tensor) const {
  const at::ScalarType type = type_of(tensor, origin_);
  const auto options = at::TensorOptions().dtype(type);
  if (tensor.begin == tensor.end) return at::empty(tensor.shape, options);
  const auto data = file_.bytes().subspan(header_.data_begin + tensor.begin, tensor.end - tensor.begin);
  if (reinterpret_cast<uintptr_t>(data.data()) % c10::elementSize(type) != 0) {
    const at::Tensor copy = at::empty(tensor.shape, options);
    std::memcpy(copy.data_ptr(), data.data(), data.size());
    return copy;
  }
  // libtorch has no read-only tensors.
  return at::from_blob(const_cast<std::byte*>(data.data()), tensor.shape, options);  // NOLINT
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const DeclaredTensors& tensors,
                                     const std::map<std::string, std::string>& metadata, FileSystem& files)
    : writer_(path, files) {
  const std::string header = to_text(header_of(tensors, metadata));
  put(header.data(), header.size());
}

void SafetensorsWriter::put(const void* data, size_t bytes) {
  writer_.write(data, bytes);
  checksum_.update(data, bytes);
}

void SafetensorsWriter::write(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.to(at::kCPU).contiguous();
  if (plain.nbytes() > 0) put(plain.data_ptr(), plain.nbytes());
}

WrittenFile SafetensorsWriter::close() {
  writer_.close();
  return {writer_.bytes_written(), checksum_.hex()};
}

WrittenFile write_safetensors(const std::filesystem::path& path, const DeclaredTensors& tensors, const MakeTensor& make,
                              FileSystem& files, const std::stop_token& stop) {
  SafetensorsWriter writer(path, tensors, {}, files);
  for (const auto& [name, declared] : tensors) {
    throw_if_stopped(stop);
    writer.write(make(name));
  }
  return writer.close();
}

WrittenFile write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  return write_safetensors(path, declare(tensors), [&](const std::string& name) { return tensors.at(name); });
}

DeclaredTensors declare(const NamedTensors& tensors) {
  DeclaredTensors declared;
  for (const auto& [name, tensor] : tensors) declared[name] = {tensor.sizes().vec(), tensor.scalar_type()};
  return declared;
}

NamedTensors read_safetensors(const std::filesystem::path& path, const WantedTensors& wanted) {
  const SafetensorsFile file(path);
  NamedTensors tensors;
  for (const TensorEntry& entry : file.tensors()) {
    if (!wanted || wanted(entry.name)) tensors.emplace(entry.name, file.view(entry).clone());
  }
  return tensors;
}

NamedTensors map_safetensors(const std::filesystem::path& path, const WantedTensors& wanted) {
  const auto file = std::make_shared<const SafetensorsFile>(path);
  NamedTensors tensors;
  for (const TensorEntry& entry : file->tensors()) {
    if (wanted && !wanted(entry.name)) continue;
    const at::Tensor view = file->view(entry);
    const auto keep = [file, view](void*) {};  // `view` may be a copy
    tensors.emplace(entry.name, at::from_blob(view.data_ptr(), view.sizes(), keep, view.options()));
  }
  return tensors;
}

int64_t count_elements(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  int64_t elements = 0;
  for (const TensorEntry& entry : file.tensors()) elements += numel(entry.shape);
  return elements;
}

}  // namespace gyre
