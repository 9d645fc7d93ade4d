// The beginning of a safetensors file, free of torch: which tensors it has, and where. A header is checked as a whole,
// against the file's length too, before anything is made of it: a forged one cannot make a reader allocate more than
// the file is long.
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
  uint64_t begin = 0, end = 0;  // in the data, which follow the header
  bool operator==(const TensorEntry&) const = default;
};

struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  // as they lie in the file
  uint64_t data_begin = 0;
  std::map<std::string, std::string> metadata = {};  // what the file says of itself
  bool operator==(const SafetensorsHeader&) const = default;
};

// The header's bytes, its length first, for tensors that lie one after the other.
std::string to_text(const SafetensorsHeader& header);
// The inverse, of a whole file's bytes; `origin` is what errors call it. InputError for whatever the format does not
// allow.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& origin);

}  // namespace gyre
