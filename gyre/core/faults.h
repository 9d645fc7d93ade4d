// Collects the faults of one input, so that the user sees all of them at once instead of one per attempt.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {

class Faults {
 public:
  static constexpr int64_t kNoLine = std::numeric_limits<int64_t>::max();

  // `line`: where in the file it is; raise() lists faults in this order, those without a line last.
  void add(std::string message, int64_t line = kNoLine) { faults_.emplace_back(line, std::move(message)); }

  // Runs `check` and keeps the InputError that it throws. Returns whether it threw none.
  template <typename Check>
  bool collect(Check&& check, int64_t line = kNoLine) {
    try {
      check();
      return true;
    } catch (const InputError& error) {
      add(error.what(), line);
      return false;
    }
  }

  bool empty() const { return faults_.empty(); }

  // Throws InputError with a line for each of the first faults and the number of the others, if there is any.
  void raise() {
    if (faults_.empty()) return;
    std::stable_sort(faults_.begin(), faults_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string lines = faults_[0].second;
    const size_t shown = std::min(faults_.size(), kMostShown);
    for (size_t i = 1; i < shown; ++i) lines += "\n" + faults_[i].second;
    if (shown < faults_.size()) lines += fmt::format("\nand {} more", faults_.size() - shown);
    throw InputError(lines);
  }

 private:
  static constexpr size_t kMostShown = 20;  // a file that is no configuration may have one on each of its lines

  std::vector<std::pair<int64_t, std::string>> faults_;
};

}  // namespace gyre
