#include "gyre/train/share_keeper.h"

#include <exception>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/host_name.h"
#include "gyre/tensors/explain_torch.h"
#include "gyre/train/initial_weights.h"

namespace gyre {

ShareKeeper::ShareKeeper(const RunDirectory& run, CheckedRun& checked, bool resume, Pipeline& pipeline,
                         FileSystem& files, Ranks& ranks)
    : run_(run),
      checked_(checked),
      resume_(resume),
      rank_(ranks.rank()),
      share_(pipeline, files),
      files_(files),
      ranks_(ranks),
      line_(ranks, 0, kSaves) {}

std::string ShareKeeper::answer(const std::string& text) {
  ShareAnswer answered;
  try {
    answered = answer(parse_share_question(text));
  } catch (const DamagedCheckpoint& damage) {
    answered.outcome = ShareAnswer::Outcome::Damaged;
    answered.what = damage.fault();
  } catch (const InputError& error) {
    answered.outcome = ShareAnswer::Outcome::Refused;
    answered.what = error.what();
  } catch (const RunError& error) {
    answered.outcome = is_no_room(error) ? ShareAnswer::Outcome::NoRoom : ShareAnswer::Outcome::Failed;
    answered.what = error.what();
  }
  return to_text(answered);
}

ShareAnswer ShareKeeper::answer(const ShareQuestion& question) {
  ShareAnswer answer;
  switch (question.kind) {
    case ShareQuestion::Kind::Look:
      return look(question);
    case ShareQuestion::Kind::Keep:
      if (question.rank == rank_) parts_.emplace(run_, checked_.config, question.mark, resume_, question.token, files_);
      break;
    case ShareQuestion::Kind::Weigh:
      answer.sizes = share_.sizes();
      break;
    case ShareQuestion::Kind::Room:
      if (parts_) parts_->check_room(question.bytes.at(static_cast<size_t>(rank_)));
      break;
    case ShareQuestion::Kind::Restore:
      restore(CheckpointReader(run_.checkpoints(), question.step, question.checkpoint));
      break;
    case ShareQuestion::Kind::Init:
      share_.begin_with(CheckpointReader(InitialWeights(checked_.config.run.init_from).run().checkpoints(),
                                         question.step, question.checkpoint));
      break;
    case ShareQuestion::Kind::Begin:
      if (parts_) parts_->begin(question.damaged, question.steps);
      break;
    case ShareQuestion::Kind::Take:
      return take(question.copy);
  }
  return answer;
}

ShareAnswer ShareKeeper::look(const ShareQuestion& question) {
  // A network file system may have cached that the directory does not exist. Reading its parent refreshes that.
  const auto root = run_.absolute_root();
  std::error_code ignored;
  entries_of(root.parent_path(), ignored);
  ShareAnswer answer;
  answer.note = DirectoryLock::note_in(run_.root());
  answer.place = {host_name(), root.string()};
  sees_rank_0s_ = answer.note == question.token;
  return answer;
}

void ShareKeeper::restore(const CheckpointReader& checkpoint) {
  share_.restore(checkpoint);
  checked_.continue_data(checkpoint.record());
}

ShareAnswer ShareKeeper::take(bool copy) {
  if (writer_.joinable()) writer_.join();
  ShareAnswer answer;
  answer.parts = share_.take(copy);
  answer.short_of_room = parts_ && parts_->is_short_of_room();
  writer_ = std::jthread([this](const std::stop_token& stop) { write(stop); });
  return answer;
}

// The body of the writing thread.
void ShareKeeper::write(const std::stop_token& stop) {
  try {
    obey_orders(stop);
  } catch (const RunError&) {              // the run is over
  } catch (const std::exception& error) {  // the result cannot be told, and rank 0 would wait for it for ever
    ranks_.report_failure(explain_torch(error));
  }
}

void ShareKeeper::obey_orders(const std::stop_token& stop) {
  for (bool ends = false; !ends && !stop.stop_requested();) {
    const WriteOrder order = parse_write_order(line_.hear(stop));
    ends = !parts_ || order.kind == WriteOrder::Kind::Drop || order.kind == WriteOrder::Kind::End;
    WriteResult result;
    try {
      result.shards = obey(order);
    } catch (const std::exception& error) {  // also libtorch's
      result.error = explain_torch(error);
      result.no_room = is_no_room(error);
    }
    if (!stop.stop_requested()) line_.say(to_text(result));
  }
}

std::vector<WrittenShard> ShareKeeper::obey(const WriteOrder& order) {
  switch (order.kind) {
    case WriteOrder::Kind::Write:
      return write_shards(order);
    case WriteOrder::Kind::Complete:
      parts_->complete(order.directory, order.step);
      break;
    case WriteOrder::Kind::Drop:
      parts_->drop(order.directory);
      break;
    case WriteOrder::Kind::KeepOnly:
      parts_->keep_only(order.steps);
      break;
    case WriteOrder::Kind::End:
      break;
  }
  return {};
}

std::vector<WrittenShard> ShareKeeper::write_shards(const WriteOrder& order) {
  const auto directory = run_.checkpoints() / order.directory;
  if (!sees_rank_0s_) {
    run_.check_in_place();
    make_directories(directory, files_);  // the first process of this host makes it
  }
  try {
    auto shards = share_.write(directory, order.numbers);
    sync_directory(directory, files_);
    return shards;
  } catch (const std::exception&) {
    if (!sees_rank_0s_) run_.check_in_place();  // rank 0 looks at its own
    throw;
  }
}

}  // namespace gyre
