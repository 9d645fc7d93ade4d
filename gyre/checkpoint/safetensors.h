// safetensors: named tensors in one file. Names are sorted and the header padded to eight bytes, so equal tensors give
// equal files. Reading is strict: whatever does not follow the format is refused, naming file and entry.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "gyre/checkpoint/format/manifest.h"
#include "gyre/core/file_system.h"
#include "gyre/tensors/parameter.h"

namespace gyre {

// fp32, bf16, fp16, fp64, int64, int32, uint8. RunError when the file cannot be written.
WrittenFile write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                              FileSystem& files = system_files());
// Which tensors are read, by name. Null: all.
using WantedTensors = std::function<bool(const std::string& name)>;

// InputError for damage. The tensors own their memory; of those that are not wanted nothing is read.
NamedTensors read_safetensors(const std::filesystem::path& path, const WantedTensors& wanted = {});
// How many numbers the file's tensors have. InputError for damage.
int64_t count_elements(const std::filesystem::path& path);

}  // namespace gyre
