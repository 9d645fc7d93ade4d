#include "gyre/exchange/hugging_face/correspondence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace gyre {
namespace {

constexpr std::string_view kNumber = "{}";

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string numbered(std::string name, int64_t block) {
  const size_t at = name.find(kNumber);
  return at == std::string::npos ? name : name.replace(at, kNumber.size(), std::to_string(block));
}

class Own {
 public:
  explicit Own(const std::vector<OwnTensor>& own) {
    for (const OwnTensor& tensor : own) by_name_[tensor.name] = &tensor;
  }

  const OwnTensor* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }
  // The numbers of rows of the stacked parts; a bias has those of its matrix.
  std::vector<int64_t> row_blocks(const OwnTensor& tensor) const {
    const OwnTensor* const matrix = matrix_of(tensor.name);
    return matrix == nullptr ? tensor.row_blocks : matrix->row_blocks;
  }
  // The size of a bias that the model lacks: the number of its matrix's outputs, or the size of its norm.
  std::optional<int64_t> bias_size(const std::string& name) const {
    const OwnTensor* const matrix = matrix_of(name);
    return matrix == nullptr ? std::nullopt : std::optional(matrix->shape.front());
  }

 private:
  const OwnTensor* matrix_of(const std::string& name) const {
    constexpr std::string_view kBias = ".bias";
    return ends_with(name, kBias) ? find(name.substr(0, name.size() - kBias.size()) + ".weight") : nullptr;
  }

  std::map<std::string, const OwnTensor*> by_name_;
};

Counterpart counterpart(const TensorPair& pair, const std::string& theirs, const OwnTensor& ours, const Own& own) {
  Counterpart entry{.theirs = theirs,
                    .shape = ours.shape,
                    .ours = ours.name,
                    .rows = ours.shape.front(),
                    .transposed = pair.transposed,
                    .use = pair.use};
  if (pair.part != TensorPair::kWhole) {
    const std::vector<int64_t> rows = own.row_blocks(ours);
    const auto part = static_cast<size_t>(pair.part);
    if (part >= rows.size()) throw std::logic_error(fmt::format("{} has no part {}", ours.name, pair.part));
    entry.first_row = std::accumulate(rows.begin(), rows.begin() + pair.part, int64_t{0});
    entry.rows = entry.shape.front() = rows[part];
  }
  if (pair.transposed) std::reverse(entry.shape.begin(), entry.shape.end());
  return entry;
}

void check_all_is_covered(const std::vector<Counterpart>& entries, const std::vector<OwnTensor>& own) {
  std::map<std::string, int64_t> rows;
  for (const Counterpart& entry : entries) {
    if (entry.use == TensorPair::Use::Own) rows[entry.ours] += entry.rows;
  }
  for (const OwnTensor& tensor : own) {
    if (rows[tensor.name] != tensor.shape.front()) {
      throw std::logic_error(fmt::format("{} is not among what Hugging Face's names are known of", tensor.name));
    }
  }
}

}  // namespace

std::vector<Counterpart> correspondence(const Family& family, int64_t blocks, const std::vector<OwnTensor>& tensors) {
  const Own own(tensors);
  std::map<std::string, Counterpart> entries;
  for (const TensorPair& pair : family.tensors) {
    const bool of_blocks = std::string_view(pair.theirs).find(kNumber) != std::string_view::npos;
    for (int64_t block = 0; block < (of_blocks ? blocks : 1); ++block) {
      const std::string theirs = numbered(pair.theirs, block), ours = numbered(pair.ours, block);
      if (const OwnTensor* const tensor = own.find(ours)) {
        entries.emplace(theirs, counterpart(pair, theirs, *tensor, own));
      } else if (const auto size = own.bias_size(ours); size && pair.zero_without) {
        entries.emplace(theirs, Counterpart{.theirs = theirs, .shape = {*size}, .ours = ""});
      }
    }
  }
  std::vector<Counterpart> sorted;
  for (auto& [name, entry] : entries) sorted.push_back(std::move(entry));
  check_all_is_covered(sorted, tensors);
  return sorted;
}

std::string canonical_name(const Family& family, const std::set<std::string>& known, const std::string& name) {
  std::string meant = name;
  constexpr std::pair<std::string_view, std::string_view> kOldEnds[] = {{"LayerNorm.gamma", "LayerNorm.weight"},
                                                                        {"LayerNorm.beta", "LayerNorm.bias"}};
  for (const auto& [old_end, end] : kOldEnds) {
    if (ends_with(meant, old_end)) meant.replace(meant.size() - old_end.size(), old_end.size(), end);
  }
  if (known.count(meant) > 0) return meant;
  return known.count(family.prefix + meant) > 0 ? family.prefix + meant : name;
}

bool is_buffer(const Family& family, const std::string& name) {
  return std::any_of(family.buffers.begin(), family.buffers.end(), [&](const std::string& end) {
    return ends_with(name, end) || "." + name == end;  // in files of the bare model
  });
}

}  // namespace gyre
