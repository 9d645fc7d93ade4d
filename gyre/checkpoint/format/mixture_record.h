// How the sources of a mixture share a run's sequences, as checkpoints keep it. Free of torch.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace gyre {

// A mixture repeats a pattern of so many sequences.
inline constexpr int64_t kMixturePattern = 1 << 16;

struct MixtureRecord {
  int64_t since = 0;                      // the run's sequences before these shares held
  std::map<std::string, int64_t> shares;  // by the source's name: its sequences in each pattern
  std::map<std::string, int64_t> used;    // likewise: its sequences among those before
  bool operator==(const MixtureRecord&) const = default;
};

}  // namespace gyre
