// Decides which source of a mixture each sequence comes from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/mixture_record.h"

namespace gyre {

// Repeats a pattern of 65,536 sequences in which every source has exactly its share, rounded, but at least one
// sequence. The order within the pattern is drawn by the seed. If a run changes the weights, another pattern begins
// there, and each source goes on with its next sequence.
class Mixture {
 public:
  using Weights = std::map<std::string, double>;  // by the source's name

  // For a run that has used `sequences` sequences. `before`: the record until then; empty if the weights have always
  // been these.
  Mixture(const Weights& weights, int64_t seed, const MixtureRecord& before = {}, int64_t sequences = 0);
  // The record from now on.
  const MixtureRecord& record() const { return record_; }

  struct Draw {
    size_t source = 0;    // in the order of their names
    uint64_t number = 0;  // how many sequences of this source came before
  };
  // For sequences from record().since on. Others wrap around, to some sequence of some source.
  Draw at(uint64_t sequence) const;

 private:
  Mixture(MixtureRecord record, int64_t seed);
  static MixtureRecord continued(const Weights& weights, int64_t seed, const MixtureRecord& before, int64_t sequences);
  std::map<std::string, int64_t> used_before(int64_t sequences) const;

  MixtureRecord record_;
  std::vector<uint64_t> shares_, used_;  // of each source, as in the record
  std::vector<uint16_t> sources_;        // source of each sequence in the pattern; empty if there is only one
  std::vector<uint16_t> numbers_;        // how many of the same source come before it in the pattern
};

}  // namespace gyre
