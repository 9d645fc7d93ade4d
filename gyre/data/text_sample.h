// The lines of a large text that a vocabulary is learnt from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gyre {

// How much text bpe is trained on: as much as the vocabulary needs, since the trainer's time and memory grow with it.
int64_t sample_bytes(int64_t vocabulary);

// Takes lines evenly from all of a text: from the beginning of every chunk, a share of it that bounds the sample. A
// line of more than 4 KiB counts as several. A line that is longer than what is left of the share is taken whole, and
// later chunks give less; what a chunk leaves over, later ones may give.
class TextSample {
 public:
  // Of a text of total_bytes, takes about `wanted`; all of it if it has no more.
  TextSample(int64_t total_bytes, int64_t wanted);
  void begin_chunk(size_t bytes);
  // Adds from the next piece of the chunk.
  void add(std::string_view piece);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  double share_;
  double room_ = 0;  // bytes that may still be taken; below 0: that were taken too early
  std::vector<std::string> lines_;
};

}  // namespace gyre
