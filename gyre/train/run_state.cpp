#include "gyre/train/run_state.h"

#include <fmt/format.h>

#include "gyre/core/error.h"

namespace gyre {
namespace {

// The file of the rank-th process among those that have something of a part. Where nobody has, the first writes one
// that is empty.
std::optional<ShardNumber> number_among(const std::vector<ShareParts>& parts, size_t rank, bool ShareParts::*part) {
  ShardNumber shard{0, 0};
  for (size_t other = 0; other < parts.size(); ++other) {
    if (!(parts[other].*part)) continue;
    ++shard.count;
    if (other <= rank) ++shard.number;
  }
  if (shard.count == 0) return rank == 0 ? std::optional(ShardNumber{1, 1}) : std::nullopt;
  return parts[rank].*part ? std::optional(shard) : std::nullopt;
}

}  // namespace

RunState::RunState(const RunDirectory& run, Pipeline& pipeline, FileSystem& files, Ranks* ranks,
                   ProcessesExecutor* others)
    : run_(run), share_(pipeline, files), ranks_(ranks), others_(others) {
  const int world = ranks == nullptr ? 1 : ranks->world();
  writers_.resize(static_cast<size_t>(world));
  for (int rank = 1; rank < world; ++rank) {
    writers_[static_cast<size_t>(rank)] = std::make_unique<TextLine>(*ranks, rank, kSaves);
  }
}

std::vector<ShareAnswer> RunState::ask(const ShareQuestion& question, const std::function<void()>& meanwhile) {
  std::vector<ShareAnswer> answers(writers_.size());
  if (others_ == nullptr) {
    if (meanwhile) meanwhile();
    return answers;
  }
  const auto texts = others_->ask(to_text(question), meanwhile);
  for (size_t rank = 1; rank < texts.size(); ++rank) answers[rank] = parse_share_answer(texts[rank]);
  return answers;
}

std::string RunState::whose(size_t rank) const {
  return rank == 0 ? "" : ranks_->name_of(static_cast<int>(rank)) + ": ";
}

void RunState::check_directory(const std::string& token) {
  const auto answers = ask({.kind = ShareQuestion::Kind::Look, .token = token});
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    if (answers[rank].sees_token) continue;
    throw InputError(
        fmt::format("{}{} is not the directory that rank 0 has under that name; every process writes its part of a "
                    "checkpoint there: give --out on a file system that all hosts share",
                    whose(rank), run_.root().string()));
  }
}

ShareSizes RunState::sizes() {
  ShareSizes all;
  const auto answers = ask({.kind = ShareQuestion::Kind::Weigh}, [&] { all = share_.sizes(); });
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    const ShareSizes& sizes = answers[rank].sizes;
    all.file_bytes += sizes.file_bytes;
    for (size_t stage = 0; stage < all.optimizer_bytes.size(); ++stage) {
      all.optimizer_bytes[stage] += sizes.optimizer_bytes.at(stage);
    }
  }
  return all;
}

void RunState::restore(const CheckpointReader& checkpoint) {
  const int64_t step = checkpoint.record().step;
  const auto answers = ask({.kind = ShareQuestion::Kind::Restore, .step = step}, [&] { share_.restore(checkpoint); });
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    const ShareAnswer& answer = answers[rank];
    if (answer.outcome == ShareAnswer::Outcome::Damaged) throw checkpoint.damaged(whose(rank) + answer.what);
    if (answer.outcome == ShareAnswer::Outcome::Refused) throw InputError(whose(rank) + answer.what);
  }
}

void RunState::take(bool copy) {
  ShareParts own;
  const auto answers = ask({.kind = ShareQuestion::Kind::Take, .copy = copy}, [&] { own = share_.take(copy); });
  parts_.assign(1, own);
  for (size_t rank = 1; rank < answers.size(); ++rank) parts_.push_back(answers[rank].parts);
}

ShardNumbers RunState::numbers_of(size_t rank) const {
  return {number_among(parts_, rank, &ShareParts::model), number_among(parts_, rank, &ShareParts::optimizer)};
}

std::vector<WrittenShard> RunState::write(const std::filesystem::path& directory) {
  const std::string name = directory.filename().string();
  for (size_t rank = 1; rank < writers_.size(); ++rank)
    writers_[rank]->say(to_text(WriteOrder{name, numbers_of(rank)}));
  std::vector<WrittenShard> shards;
  std::string error;
  try {
    shards = share_.write(directory, numbers_of(0));
  } catch (const Error& here) {
    error = here.what();
  }
  for (size_t rank = 1; rank < writers_.size(); ++rank) {
    const WriteResult result = parse_write_result(writers_[rank]->hear());
    if (error.empty() && !result.error.empty()) error = whose(rank) + result.error;
    shards.insert(shards.end(), result.shards.begin(), result.shards.end());
  }
  if (!error.empty()) throw RunError(error);
  return shards;
}

}  // namespace gyre
