#include "gyre/train/run_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/host_name.h"
#include "gyre/core/text.h"
#include "gyre/tensors/explain_torch.h"

namespace gyre {
namespace {

// The number of process `rank` among those that have tensors of a part; empty if it has none. If no process has any,
// rank 0 writes an empty file.
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

// What it asks another process to do: "read its share of step 4".
std::string describe(const ShareQuestion& question) {
  switch (question.kind) {
    case ShareQuestion::Kind::Look:
      return "look into its run directory";
    case ShareQuestion::Kind::Keep:
    case ShareQuestion::Kind::Begin:
      return "prepare its run directory";
    case ShareQuestion::Kind::Weigh:
      return "tell how large its share is";
    case ShareQuestion::Kind::Room:
      return "find room for its part of a checkpoint";
    case ShareQuestion::Kind::Restore:
      return fmt::format("read its share of step {}", question.step);
    case ShareQuestion::Kind::Init:
      return "read its share of the first weights (init_from)";
    case ShareQuestion::Kind::Take:
      return "hold its share for a save";
  }
  return "";
}

}  // namespace

RunState::RunState(const RunDirectory& run, Pipeline& pipeline, FileSystem& files)
    : run_(run),
      share_(pipeline, files),
      files_(files),
      stall_seconds_(pipeline.options().stall_seconds),
      writers_(1),
      seen_(1) {}

RunState::RunState(const RunDirectory& run, Pipeline& pipeline, FileSystem& files, Ranks& ranks,
                   ProcessesExecutor& others, std::function<void(const std::string&)> say)
    : RunState(run, pipeline, files) {
  ranks_ = &ranks;
  others_ = &others;
  say_ = std::move(say);
  for (int rank = 1; rank < ranks.world(); ++rank) {
    writers_.push_back(std::make_unique<TextLine>(ranks, rank, kSaves));
  }
  seen_.resize(writers_.size());
}

std::vector<ShareAnswer> RunState::ask(const ShareQuestion& question, const std::function<void()>& meanwhile) {
  std::vector<ShareAnswer> answers(writers_.size());
  if (others_ == nullptr) {
    if (meanwhile) meanwhile();
    return answers;
  }
  const auto late = [&](int rank) { tell_late(rank, question); };
  const auto texts = others_->ask(to_text(question), meanwhile, {stall_seconds_, late});
  for (size_t rank = 1; rank < texts.size(); ++rank) answers[rank] = parse_share_answer(texts[rank]);
  raise(answers);
  return answers;
}

// Its beats go on, so nothing else notices that its disk, say, does not answer.
void RunState::tell_late(int rank, const ShareQuestion& question) const {
  say_(fmt::format("{} takes longer than {:g} s (stall_seconds) to {}; does its disk answer? Waiting for it",
                   ranks_->name_of(rank), stall_seconds_, describe(question)));
}

std::string RunState::whose(size_t rank) const {
  return rank == 0 ? "" : ranks_->name_of(static_cast<int>(rank)) + ": ";
}

void RunState::raise(const std::vector<ShareAnswer>& answers) const {
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    const ShareAnswer& answer = answers[rank];
    if (answer.outcome == ShareAnswer::Outcome::Refused) throw InputError(whose(rank) + answer.what);
    if (answer.outcome == ShareAnswer::Outcome::Failed) throw RunError(whose(rank) + answer.what);
    if (answer.outcome == ShareAnswer::Outcome::NoRoom) throw NoRoom(whose(rank) + answer.what);
  }
}

// Each round finds one directory. Hosts do not matter: processes of two hosts may see the same directory, and those of
// one host two.
void RunState::find_directories(const std::string& token, bool shared) {
  const auto root = run_.absolute_root();
  const auto own = run_.read_parts_mark();
  mark_ = {own ? own->run : token.substr(1), host_name(), root.string()};
  places_ = {{0, mark_.host, mark_.directory, token}};
  seen_.assign(seen_.size(), nowhere());
  for (;;) {
    auto answers = ask({.kind = ShareQuestion::Kind::Look, .token = token});
    answers[0].note = DirectoryLock::note_in(run_.root());
    note_who_sees_the_last_place(answers);
    const auto next = std::ranges::find(seen_, nowhere());
    if (next == seen_.end()) return;
    const auto keeper = static_cast<size_t>(next - seen_.begin());
    if (shared) {
      throw InputError(fmt::format(
          "{}{} is not the directory that rank 0 has under that name; every process writes its part of a checkpoint "
          "there: give --out on a file system that all hosts share, or, where each host is to have its own, "
          "--set run.shared_directory=false",
          whose(keeper), run_.root().string()));
    }
    add_place(keeper, answers[keeper].place, fmt::format("{}-{}", token, keeper));
  }
}

// answers: what each process found in its run directory. Throws InputError if one misses what a process has left there.
void RunState::note_who_sees_the_last_place(const std::vector<ShareAnswer>& answers) {
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    if (seen_[rank] == nowhere() && answers[rank].note == places_.back().token) seen_[rank] = places_.size() - 1;
    // Directories of earlier rounds are checked again: if this round's keeper sees one of them by another way, its note
    // has replaced the earlier one.
    const bool is_sound =
        seen_[rank] == nowhere() ? rank != places_.back().keeper : answers[rank].note == places_[seen_[rank]].token;
    if (is_sound) continue;
    throw InputError(
        fmt::format("{}{}: a file that a process of this run wrote there is missing; another run uses the directory, "
                    "or its file system shows different contents to different hosts",
                    whose(rank), run_.root().string()));
  }
}

// Lets the process `keeper` take its directory and leave `token` there. Hosts may have the same name, as "localhost".
// Their directories then need other paths, since the manifest says by both where a file is.
void RunState::add_place(size_t keeper, const FilePlace& place, const std::string& token) {
  for (const Directory& other : places_) {
    if (other.host != place.host || other.root != place.directory) continue;
    throw InputError(fmt::format(
        "{}{}: is another directory than rank {}'s, which has the same path on a host of the same name, {}; "
        "give each host a name of its own, or this one another --out",
        whose(keeper), place.directory, other.keeper, place.host));
  }
  places_.push_back({keeper, place.host, place.directory, token});
  ask({.kind = ShareQuestion::Kind::Keep, .token = token, .rank = static_cast<int>(keeper), .mark = mark_});
}

std::string RunState::describe_directories() const {
  std::vector<std::string> directories;
  for (const Directory& place : places_) {
    directories.push_back(fmt::format("rank {} {} on {}", place.keeper, place.root, place.host));
  }
  return join(directories, ", ");
}

ShareSizes RunState::sizes() {
  ShareSizes total;
  const auto answers = ask({.kind = ShareQuestion::Kind::Weigh}, [&] { total = share_.sizes(); });
  bytes_.assign(answers.size(), 0);
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    const ShareSizes& sizes = answers[rank].sizes;
    const bool is_elsewhere = has_parts() && seen_[rank] > 0;
    (is_elsewhere ? bytes_[places_[seen_[rank]].keeper] : total.file_bytes) += sizes.file_bytes;
    for (size_t stage = 0; stage < total.optimizer_bytes.size(); ++stage) {
      total.optimizer_bytes[stage] += sizes.optimizer_bytes.at(stage);
    }
  }
  return total;
}

void RunState::check_room() {
  if (has_parts()) ask({.kind = ShareQuestion::Kind::Room, .bytes = bytes_});
}

void RunState::read(ShareQuestion question, const CheckpointReader& checkpoint, const std::function<void()>& own) {
  question.step = checkpoint.record().step;
  if (others_ != nullptr) question.checkpoint = checkpoint.describe();
  const auto answers = ask(question, own);
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    if (answers[rank].outcome != ShareAnswer::Outcome::Damaged) continue;
    throw checkpoint.damaged(whose(rank) + answers[rank].what);
  }
}

void RunState::restore(const CheckpointReader& checkpoint) {
  read({.kind = ShareQuestion::Kind::Restore}, checkpoint, [&] { share_.restore(checkpoint); });
}

void RunState::begin_with(const CheckpointReader& checkpoint) {
  read({.kind = ShareQuestion::Kind::Init}, checkpoint, [&] { share_.begin_with(checkpoint); });
}

void RunState::begin(const std::vector<int64_t>& damaged) {
  if (!has_parts()) return;
  run_.write_parts_mark({mark_.run, "", ""});
  sync_directory(run_.checkpoints(), files_);  // a checkpoint whose parts others remove must not come back here
  ask({.kind = ShareQuestion::Kind::Begin, .steps = list_checkpoints(run_.checkpoints()), .damaged = damaged});
}

void RunState::take(bool copy) {
  ShareParts own;
  const auto answers = ask({.kind = ShareQuestion::Kind::Take, .copy = copy}, [&] { own = share_.take(copy); });
  parts_.assign(1, own);
  short_of_room_ = false;
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    parts_.push_back(answers[rank].parts);
    short_of_room_ |= answers[rank].short_of_room;
  }
}

ShardNumbers RunState::numbers_of(size_t rank) const {
  return {number_among(parts_, rank, &ShareParts::model), number_among(parts_, rank, &ShareParts::optimizer)};
}

std::vector<WrittenShard> RunState::write(const std::filesystem::path& directory, int64_t step) {
  const std::string name = directory.filename().string();
  for (size_t rank = 1; rank < writers_.size(); ++rank)
    writers_[rank]->say(to_text(WriteOrder{.directory = name, .numbers = numbers_of(rank)}));
  std::vector<WrittenShard> shards;
  FirstFailure failure;
  try {
    shards = share_.write(directory, numbers_of(0));
  } catch (const std::exception& error) {  // the others' results must still be received
    failure.note({.error = explain_torch(error), .no_room = is_no_room(error)}, "");
  }
  for (size_t rank = 1; rank < writers_.size(); ++rank) {
    WriteResult result = hear(rank);
    failure.note(result, whose(rank));
    if (has_parts() && seen_[rank] > 0) {
      const Directory& place = places_[seen_[rank]];
      const FilePlace written{place.host, checkpoint_path(RunDirectory(place.root).checkpoints(), step).string()};
      for (WrittenShard& shard : result.shards) shard.place = written;
    }
    shards.insert(shards.end(), result.shards.begin(), result.shards.end());
  }
  if (failure) order({.kind = WriteOrder::Kind::Drop, .directory = name});
  failure.raise();
  return shards;
}

WriteResult RunState::hear(size_t rank) {
  awaited_ = rank;
  WriteResult result = parse_write_result(writers_[rank]->hear());
  awaited_ = 0;
  return result;
}

std::string RunState::awaited() const {
  const size_t rank = awaited_;
  if (rank == 0) return "";
  const auto directory =
      has_parts() && seen_[rank] > 0 ? RunDirectory(places_[seen_[rank]].root).checkpoints() : run_.checkpoints();
  return fmt::format("{}, which writes to {}", ranks_->name_of(static_cast<int>(rank)), directory.string());
}

RunState::FirstFailure RunState::order(const WriteOrder& order) {
  FirstFailure failure;
  if (!has_parts()) return failure;
  for (size_t place = 1; place < places_.size(); ++place) writers_[places_[place].keeper]->say(to_text(order));
  for (size_t place = 1; place < places_.size(); ++place) {
    const size_t keeper = places_[place].keeper;
    failure.note(hear(keeper), whose(keeper));
  }
  return failure;
}

void RunState::FirstFailure::note(const WriteResult& result, const std::string& whose) {
  if (*this || result.error.empty()) return;
  error_ = whose + result.error;
  no_room_ = result.no_room;
}

void RunState::FirstFailure::raise() const {
  if (*this) throw_run_error(error_, no_room_);
}

void RunState::complete(const std::filesystem::path& directory, int64_t step) {
  const std::string name = directory.filename().string();
  order({.kind = WriteOrder::Kind::Complete, .directory = name, .step = step}).raise();
}

void RunState::remove_parts_elsewhere() {
  order({.kind = WriteOrder::Kind::KeepOnly, .steps = list_checkpoints(run_.checkpoints())});
}

void RunState::end_save() {
  order({.kind = WriteOrder::Kind::End});
}

}  // namespace gyre
