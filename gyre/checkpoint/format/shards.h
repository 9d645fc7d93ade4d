// The files that a checkpoint's tensors are in: one for each part, or several (shards) and an index, named as Hugging
// Face's libraries name and read them. Free of torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

enum class Part { Model, Optimizer };
inline constexpr Part kParts[] = {Part::Model, Part::Optimizer};
std::string to_string(Part part);

// Number of one of a part's files: the `number`-th of `count`, from 1.
struct ShardNumber {
  int number = 1;
  int count = 1;
};

// "model.safetensors" if it is the only one, "model-00002-of-00004.safetensors" of several.
std::string shard_name(Part part, ShardNumber shard);
// "model.safetensors.index.json".
std::string index_name(Part part);

// The index of a part in several files: which tensor is in which file.
struct ShardIndex {
  uint64_t total_size = 0;                        // bytes of all tensors; 0: not known
  std::map<std::string, std::string> weight_map;  // tensor -> file
  bool operator==(const ShardIndex&) const = default;
};

std::string to_text(const ShardIndex& index);
// The inverse. InputError says what is wrong with the text, without naming a file.
ShardIndex parse_shard_index(std::string_view text);

// A part's files of tensors among `names`, in order. Throws InputError unless there is the one file, or a whole set of
// several with their index.
std::vector<std::string> shards_among(const std::vector<std::string>& names, Part part);

}  // namespace gyre
