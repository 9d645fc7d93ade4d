// The mark in checkpoints/ of a run whose hosts have run directories of their own. It distinguishes the run's own
// directory, which has the manifests, from those that have parts, and one run's directories from another's. Free of
// torch.
#pragma once

#include <string>
#include <string_view>

namespace gyre {

struct PartsMark {
  std::string run;  // a random name
  // In a directory of parts: where the run's own is.
  std::string host, directory;

  bool is_of_parts() const { return !host.empty(); }
  bool operator==(const PartsMark&) const = default;
};

std::string to_text(const PartsMark& mark);
// The inverse. InputError says what is wrong with the text, without naming a file.
PartsMark parse_parts_mark(std::string_view text);

}  // namespace gyre
