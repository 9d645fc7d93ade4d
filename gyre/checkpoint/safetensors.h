// safetensors: named tensors in one file. Names are sorted and the header padded to eight bytes, so equal tensors give
// equal files. Reading is strict: whatever does not follow the format is refused, naming file and entry.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/manifest.h"
#include "gyre/checkpoint/format/safetensors_header.h"
#include "gyre/core/file_system.h"
#include "gyre/core/files.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// A file that is mapped into memory and read in place.
class SafetensorsFile {
 public:
  // Throws InputError if the file is damaged.
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  // Usually the file's own bytes, which must not be changed and are valid as long as this object; a copy if they are
  // not aligned. Throws InputError for a type of the format that gyre does not read.
  at::Tensor view(const TensorEntry& tensor) const;

 private:
  std::string origin_;
  MappedFile file_;
  SafetensorsHeader header_;
};

// What a file says of tensors before their values, by name. Types: fp32, bf16, fp16, fp64, int64, int32, uint8.
struct DeclaredTensor {
  std::vector<int64_t> shape;
  at::ScalarType type = at::kFloat;
};
uint64_t bytes_of(const DeclaredTensor& tensor);
using DeclaredTensors = std::map<std::string, DeclaredTensor>;

// A file that is written tensor by tensor, in the order of their names.
class SafetensorsWriter {
 public:
  // Throws RunError if the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, const DeclaredTensors& tensors,
                    const std::map<std::string, std::string>& metadata = {}, FileSystem& files = system_files());
  // Writes the next tensor. Throws RunError.
  void write(const at::Tensor& tensor);
  // Call it after the last tensor. The file is then durable.
  WrittenFile close();

 private:
  void put(const void* data, size_t bytes);

  FileWriter writer_;
  Checksum checksum_;
};

// Gives a tensor when it is its turn to be written.
using MakeTensor = std::function<at::Tensor(const std::string& name)>;
// Writes a whole file, holding one tensor at a time. Throws RunError if it cannot be written, Stopped (core/stopped.h)
// between two tensors, and what `make` throws.
WrittenFile write_safetensors(const std::filesystem::path& path, const DeclaredTensors& tensors, const MakeTensor& make,
                              FileSystem& files = system_files(), const std::stop_token& stop = {});
// The same of tensors that are there.
WrittenFile write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors);
DeclaredTensors declare(const NamedTensors& tensors);
// Selects the tensors to read, by name. Null: all.
using WantedTensors = std::function<bool(const std::string& name)>;

// Throws InputError if the file is damaged. The tensors own their memory; the data of unwanted ones is not read.
NamedTensors read_safetensors(const std::filesystem::path& path, const WantedTensors& wanted = {});
// The same without taking memory: the tensors lie in the file's map, which lasts as long as one of them, and must not
// be changed.
NamedTensors map_safetensors(const std::filesystem::path& path, const WantedTensors& wanted = {});
// The number of elements of all tensors of the file. Throws InputError if the file is damaged.
int64_t count_elements(const std::filesystem::path& path);

}  // namespace gyre
