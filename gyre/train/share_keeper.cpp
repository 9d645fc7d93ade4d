#include "gyre/train/share_keeper.h"

#include <exception>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"

namespace gyre {

ShareKeeper::ShareKeeper(const RunDirectory& run, Pipeline& pipeline, FileSystem& files, Ranks& ranks)
    : run_(run), share_(pipeline, files), files_(files), line_(ranks, 0, kSaves) {}

std::string ShareKeeper::answer(const std::string& text) {
  const ShareQuestion question = parse_share_question(text);
  switch (question.kind) {
    case ShareQuestion::Kind::Look:
      return to_text(look(question.token));
    case ShareQuestion::Kind::Weigh: {
      ShareAnswer answer;
      answer.sizes = share_.sizes();
      return to_text(answer);
    }
    case ShareQuestion::Kind::Restore:
      return to_text(restore(question.step));
    case ShareQuestion::Kind::Take:
      return to_text(take(question.copy));
  }
  return "";
}

ShareAnswer ShareKeeper::look(const std::string& token) const {
  // A network file system may remember that the directory was not there; who reads the one above asks again.
  const auto above = std::filesystem::absolute(run_.root() / ".").lexically_normal().parent_path().parent_path();
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(above, ignored)) static_cast<void>(entry);
  ShareAnswer answer;
  answer.sees_token = DirectoryLock::note_in(run_.root()) == token;
  return answer;
}

ShareAnswer ShareKeeper::restore(int64_t step) {
  ShareAnswer answer;
  try {
    share_.restore(CheckpointReader(run_.checkpoints(), step));
  } catch (const DamagedCheckpoint& damage) {
    answer.outcome = ShareAnswer::Outcome::Damaged;
    answer.what = damage.fault();
  } catch (const InputError& error) {
    answer.outcome = ShareAnswer::Outcome::Refused;
    answer.what = error.what();
  }
  return answer;
}

ShareAnswer ShareKeeper::take(bool copy) {
  if (writer_.joinable()) writer_.join();
  ShareAnswer answer;
  answer.parts = share_.take(copy);
  writer_ = std::jthread([this](const std::stop_token& stop) { write(stop); });
  return answer;
}

void ShareKeeper::write(const std::stop_token& stop) {
  WriteResult result;
  try {
    const WriteOrder order = parse_write_order(line_.hear(stop));
    const auto directory = run_.checkpoints() / order.directory;
    result.shards = share_.write(directory, order.numbers);
    sync_directory(directory, files_);
  } catch (const std::exception& error) {  // libtorch's own, too
    result.shards.clear();
    result.error = error.what();
  }
  if (!stop.stop_requested()) line_.say(to_text(result));
}

}  // namespace gyre
