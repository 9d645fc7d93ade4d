#include "gyre/data/token_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cctype>
#include <utility>

namespace gyre {
namespace {

std::string stem_of(const std::string& first) {
  return std::filesystem::path(first).stem().string();
}

}  // namespace

bool is_shard_of(const std::string& name, const std::string& first) {
  const std::string begin = stem_of(first) + "_", end = ".bin";
  if (name == first) return true;
  if (!name.starts_with(begin) || !name.ends_with(end) || name.size() <= begin.size() + end.size()) return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin.size()),
                     name.end() - static_cast<std::ptrdiff_t>(end.size()),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<std::string> shards_of(const std::string& first, const DataIdentity& files) {
  std::vector<std::string> names;  // sorted: '.' comes before '_', and numbers have one width
  for (const auto& [name, checksum] : files) {
    if (is_shard_of(name, first)) names.push_back(name);
  }
  return names;
}

TokenShards::TokenShards(const std::filesystem::path& directory, std::string first, int64_t vocabulary, int64_t most,
                         FileSystem& files)
    : directory_(directory), first_(std::move(first)), vocabulary_(vocabulary), most_(most), files_(files) {
  assert(most > 0 && most <= TokenFileWriter::kMostTokens);
  add_file();
}

std::string TokenShards::name_of(size_t shard) const {
  return shard == 0 ? first_ : fmt::format("{}_{:06}.bin", stem_of(first_), shard + 1);
}

void TokenShards::add_file() {
  if (!shards_.empty()) shards_.back()->pause();
  shards_.push_back(std::make_unique<TokenFileWriter>(directory_ / name_of(shards_.size()), vocabulary_, files_));
}

void TokenShards::append(std::span<const int32_t> tokens) {
  while (!tokens.empty()) {
    if (shards_.back()->size() == most_) add_file();
    const auto room = static_cast<size_t>(most_ - shards_.back()->size());
    const auto now = tokens.first(std::min(room, tokens.size()));
    shards_.back()->append(now);
    tokens = tokens.subspan(now.size());
  }
}

int64_t TokenShards::size() const {
  return static_cast<int64_t>(shards_.size() - 1) * most_ + shards_.back()->size();
}

void TokenShards::move_tail(int64_t count, TokenShards& other) {
  const int64_t begin = size() - count;
  const auto first = static_cast<size_t>(begin / most_);
  for (size_t shard = first; shard < shards_.size(); ++shard) {
    const int64_t stays = shard == first ? begin % most_ : 0;
    shards_[shard]->move_tail(shards_[shard]->size() - stays, [&](std::span<const int32_t> t) { other.append(t); });
  }
  const bool keeps_first = begin % most_ > 0 || first == 0;
  shards_.resize(std::min(shards_.size(), keeps_first ? first + 1 : first));  // files of those left out are removed
}

DataIdentity TokenShards::finish() {
  DataIdentity checksums;
  for (size_t shard = 0; shard < shards_.size(); ++shard) checksums[name_of(shard)] = shards_[shard]->finish();
  return checksums;
}

}  // namespace gyre
