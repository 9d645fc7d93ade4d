// The header of a safetensors file, free of torch: which tensors it has, and where. All of it is checked, against the
// file's length too, before any of it is used, so a forged one cannot make a reader allocate more than the file is
// long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gyre {

struct TensorEntry {
  std::string name;
  std::string type;  // F32, BF16, ...
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // offsets in the data, which follows the header
  bool operator==(const TensorEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // in the order of their data
  uint64_t data_begin = 0;
  std::map<std::string, std::string> metadata = {};  // __metadata__
  bool operator==(const SafetensorsHeader&) const = default;
};

// The beginning of a file: the header's length in 8 bytes, and the header, padded with spaces to a multiple of 8.
// Throws RunError if readers would refuse it for its length.
std::string to_text(const SafetensorsHeader& header);
// Parses the header of a whole file. `origin` is what errors call the file. Throws InputError for whatever the format
// does not allow.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& origin);

}  // namespace gyre
