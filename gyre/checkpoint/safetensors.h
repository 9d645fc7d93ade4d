// safetensors: named tensors in one file. Names are sorted and the header padded to eight bytes, so equal tensors give
// equal files. Reading is strict: whatever does not follow the format is refused, naming file and entry.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/manifest.h"
#include "gyre/checkpoint/format/safetensors_header.h"
#include "gyre/core/file_system.h"
#include "gyre/core/files.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// A file that is read in place.
class SafetensorsFile {
 public:
  // InputError for damage.
  explicit SafetensorsFile(const std::filesystem::path& path);
  const std::vector<TensorEntry>& tensors() const { return header_.tensors; }
  // Mostly the file's own bytes, for as long as this object is there: not to be changed. InputError for a type that the
  // format has and gyre does not read.
  at::Tensor view(const TensorEntry& tensor) const;

 private:
  std::string origin_;
  MappedFile file_;
  SafetensorsHeader header_;
};

// A file that is written tensor by tensor, in the order of their names.
class SafetensorsWriter {
 public:
  struct Declared {
    std::vector<int64_t> shape;
    at::ScalarType type = at::kFloat;
  };
  // fp32, bf16, fp16, fp64, int64, int32, uint8. RunError when the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, const std::map<std::string, Declared>& tensors,
                    const std::map<std::string, std::string>& metadata = {}, FileSystem& files = system_files());
  // The next one. RunError.
  void write(const at::Tensor& tensor);
  // After all of them.
  WrittenFile close();

 private:
  void put(const void* data, size_t bytes);

  FileWriter writer_;
  Checksum checksum_;
};

// All at once. RunError when the file cannot be written.
WrittenFile write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                              FileSystem& files = system_files());
// Which tensors are read, by name. Null: all.
using WantedTensors = std::function<bool(const std::string& name)>;

// InputError for damage. The tensors own their memory; of those that are not wanted nothing is read.
NamedTensors read_safetensors(const std::filesystem::path& path, const WantedTensors& wanted = {});
// How many numbers the file's tensors have. InputError for damage.
int64_t count_elements(const std::filesystem::path& path);

}  // namespace gyre
