// The state of a run (weights and optimizers' states) as rank 0 or the only process handles it. Every process has a
// share, reads it from checkpoints and writes it into them; no other process's tensors come here.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gyre/runtime/processes_executor.h"
#include "gyre/runtime/ranks/text_line.h"
#include "gyre/train/run_directory.h"
#include "gyre/train/share_messages.h"
#include "gyre/train/state_share.h"

namespace gyre {

class RunState {
 public:
  // In a run of one process.
  RunState(const RunDirectory& run, Pipeline& pipeline, FileSystem& files);
  // On rank 0, with its executor. say: tells the user of a process that has not answered for stall_seconds, once for
  // each question. All arguments must outlive this object.
  RunState(const RunDirectory& run, Pipeline& pipeline, FileSystem& files, Ranks& ranks, ProcessesExecutor& others,
           std::function<void(const std::string&)> say);

  // Finds out which processes see `token` in the run's directory. If `shared`, throws InputError if a process does not,
  // since its directory is another one. Otherwise the first process that sees a directory becomes its keeper.
  void find_directories(const std::string& token, bool shared);
  // Whether some files of a checkpoint lie in other directories than rank 0's.
  bool has_parts() const { return places_.size() > 1; }
  // "rank 0 /runs/a on host-a, rank 4 /runs/a on host-b".
  std::string describe_directories() const;
  // The sum over all processes; file_bytes only over those that see rank 0's directory.
  ShareSizes sizes();
  // Call it after sizes(). Throws NoRoom if another directory has none for its part of a checkpoint.
  void check_room();
  // Throws what CheckpointReader throws, and InputError for a state that does not fit. An error of another process
  // names it.
  void restore(const CheckpointReader& checkpoint);
  // Loads only the weights, from a checkpoint of the run that [run] init_from names. Throws the same.
  void begin_with(const CheckpointReader& checkpoint);
  // Called when the run begins and its own directory is ready: prepares the other directories. `damaged`: checkpoints
  // that were set aside.
  void begin(const std::vector<int64_t>& damaged);
  // See StateShare::take(); to be called between segments.
  void take(bool copy);
  // Whether another directory has no room for what was taken.
  bool is_short_of_room() const { return short_of_room_; }

  // A save of what was taken, on any thread. First: all processes write into `directory`, which lies beside the run's
  // checkpoints, or into one of that name beside their own host's. If any fails, throws RunError that names it, after
  // all have ended; the save is over then.
  std::vector<WrittenShard> write(const std::filesystem::path& directory, int64_t step);
  // On any thread during a save: which other process is waited for, and where it writes, as a clause. Empty if none is.
  std::string awaited() const;
  // Then: the other directories give the parts the checkpoint's name, before rank 0's manifest makes them a checkpoint.
  // Throws RunError.
  void complete(const std::filesystem::path& directory, int64_t step);
  // At any time before end_save(): the other directories remove parts that belong to no checkpoint here. A failure
  // loses nothing.
  void remove_parts_elsewhere();
  // Last, if write() succeeded.
  void end_save();
  // The host of the run's own directory, for the manifest; empty if there are no other directories.
  std::string host() const { return has_parts() ? places_[0].host : ""; }

 private:
  // The answers by rank; rank 0's is empty. `meanwhile`, which handles this process's share, runs while the others
  // answer. Throws what it throws, and the error of a process that refused or failed; damage is left to the caller.
  std::vector<ShareAnswer> ask(const ShareQuestion& question, const std::function<void()>& meanwhile = {});
  void tell_late(int rank, const ShareQuestion& question) const;
  void note_who_sees_the_last_place(const std::vector<ShareAnswer>& answers);
  void add_place(size_t keeper, const FilePlace& place, const std::string& token);
  size_t nowhere() const { return seen_.size(); }  // in `seen_`, while the directory is not found
  ShardNumbers numbers_of(size_t rank) const;
  std::string whose(size_t rank) const;
  void read(ShareQuestion question, const CheckpointReader& checkpoint, const std::function<void()>& own);
  void raise(const std::vector<ShareAnswer>& answers) const;

  // Of several processes that write: the first that failed.
  class FirstFailure {
   public:
    // `whose`: the name of the process, to begin the message with.
    void note(const WriteResult& result, const std::string& whose);
    explicit operator bool() const { return !error_.empty(); }
    // Throws it, if there is one.
    void raise() const;

   private:
    std::string error_;
    bool no_room_ = false;
  };
  WriteResult hear(size_t rank);
  // Sends `order` to the keepers of other directories.
  FirstFailure order(const WriteOrder& order);

  // A directory that some processes see.
  struct Directory {
    size_t keeper = 0;  // rank
    std::string host, root;
    std::string token;  // the note that the keeper has left there
  };

  const RunDirectory& run_;
  StateShare share_;
  FileSystem& files_;
  Ranks* ranks_ = nullptr;  // this and `others_`: null in a run of one process
  ProcessesExecutor* others_ = nullptr;
  std::function<void(const std::string&)> say_;
  double stall_seconds_;
  std::vector<std::unique_ptr<TextLine>> writers_;  // [rank]
  std::vector<ShareParts> parts_;                   // [rank]: which parts were taken
  std::vector<Directory> places_;                   // rank 0's is the first
  std::vector<size_t> seen_;                        // [rank]: index of its directory in places_
  std::vector<int64_t> bytes_;                      // [rank]: of a keeper, size of the files that go to its directory
  PartsMark mark_;
  bool short_of_room_ = false;
  std::atomic<size_t> awaited_ = 0;  // the rank whose answer to a WriteOrder is waited for; 0: none
};

}  // namespace gyre
