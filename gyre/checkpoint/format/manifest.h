// manifest.json: what a checkpoint has besides tensors, and the sizes and checksums of its files. Free of torch.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/checkpoint/format/mixture_record.h"
#include "gyre/checkpoint/format/shards.h"
#include "gyre/core/error.h"

namespace gyre {

// Where a run stands.
// NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
struct CheckpointRecord {
  int64_t step = 0;  // updates made
  int64_t microbatches = 0;
  int64_t tokens = 0;
  uint64_t seed = 0;
  std::vector<int64_t> drains;              // drain points that interrupts and the clock added
  nlohmann::ordered_json model;             // the model's shape
  std::map<std::string, std::string> data;  // checksums of the files it was trained on; empty: not known
  // [stage]: delay -> microbatches whose gradient was so many updates old, since the run had these stages.
  std::vector<std::map<int64_t, int64_t>> delay;
  int64_t skipped = 0;                    // updates of stages that were skipped
  std::vector<int64_t> skipped_in_a_row;  // [stage]: how many of the latest updates in a row; empty if none
  MixtureRecord mixture;                  // of the sources of its data; empty if there is only one
  // Whether no update was being left out. If one was, the run may be about to diverge, whatever is done from here on.
  bool is_sound() const { return skipped_in_a_row.empty(); }
  bool operator==(const CheckpointRecord&) const = default;
};

struct WrittenFile {
  uint64_t bytes = 0;
  std::string checksum;  // XXH3-128, hexadecimal
  bool operator==(const WrittenFile&) const = default;
};

// Where a file was written: the host, and the directory of the checkpoint there.
struct FilePlace {
  std::string host, directory;
  bool operator==(const FilePlace&) const = default;
};

// NOLINTNEXTLINE(bugprone-exception-escape): moving JSON is said to throw, and does not
struct Manifest {
  CheckpointRecord record;
  std::map<std::string, WrittenFile> files;      // tensors of each part, and the index of one that is in several
  std::map<std::string, FilePlace> places = {};  // of each file, unless all were written beside the manifest
  bool operator==(const Manifest&) const = default;
};

// The files with the part's tensors. Throws InputError if the manifest lacks some, which it never does if it is from
// parse_manifest.
std::vector<std::string> shards_of(const Manifest& manifest, Part part);

// One line of JSON; its last key is the checksum of the rest. One file for each part is version 1, several are 2, and
// with places it is 3.
std::string to_text(const Manifest& manifest);
// A manifest of a version that this gyre does not know: newer, and not damaged.
class NewerManifest : public InputError {
 public:
  using InputError::InputError;
};
// The inverse of to_text. InputError says what is wrong with the text, without naming a file.
Manifest parse_manifest(std::string_view text);

}  // namespace gyre
