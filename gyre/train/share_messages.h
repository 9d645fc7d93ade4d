// The messages between rank 0 and the other processes about a run's state, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/checkpoint/format/parts_mark.h"
#include "gyre/train/state_share.h"

namespace gyre {

// The number of the TextLine between two processes that writers use, at the same time as training.
inline constexpr int kSaves = 2;

struct ShareQuestion {
  enum class Kind {
    Look,     // what is the note in your run directory? `token` is rank 0's
    Keep,     // process `rank`: keep your directory, of parts of the run that `mark` names, and leave `token` there
    Weigh,    // how large is your share?
    Room,     // keepers: is there room for a checkpoint's files of bytes[your rank] in your directory?
    Restore,  // restore your share from the checkpoint of `step`
    Init,     // begin with the weights of the checkpoint of `step` of the run that [run] init_from names
    Begin,    // keepers: the run begins, with the checkpoints of `steps`; those of `damaged` are to be set aside
    Take,     // hold your share as it is now, as a copy with `copy`; a WriteOrder will say where it goes
  };
  Kind kind = Kind::Look;
  std::string token = {};
  int rank = 0;
  PartsMark mark = {};
  std::vector<int64_t> bytes = {};  // [rank]
  int64_t step = 0;
  CheckpointDescription checkpoint = {};
  std::vector<int64_t> steps = {}, damaged = {};
  bool copy = false;
};
std::string to_text(const ShareQuestion& question);
ShareQuestion parse_share_question(const std::string& text);

struct ShareAnswer {
  // All but the first are for an error: DamagedCheckpoint, InputError, RunError, NoRoom.
  enum class Outcome { Done, Damaged, Refused, Failed, NoRoom };
  Outcome outcome = Outcome::Done;
  std::string what;  // the fault; empty if done
  std::string note;  // Look: the note in the run directory
  FilePlace place;   // this process's host, and its run directory
  ShareSizes sizes;
  ShareParts parts;
  bool short_of_room = false;  // a keeper's disk has no room for the next checkpoint
};
std::string to_text(const ShareAnswer& answer);
ShareAnswer parse_share_answer(const std::string& text);

// From rank 0 to a writer.
struct WriteOrder {
  enum class Kind {
    Write,     // your files, into `directory` within checkpoints/
    Complete,  // keepers: `directory` becomes the checkpoint of `step`
    Drop,      // keepers: remove `directory`; no order follows
    KeepOnly,  // keepers: keep the checkpoints of `steps`, and no others
    End,       // keepers: no order follows. Other processes get none after Write
  };
  Kind kind = Kind::Write;
  std::string directory = {};
  ShardNumbers numbers = {};
  int64_t step = 0;
  std::vector<int64_t> steps = {};
};
std::string to_text(const WriteOrder& order);
WriteOrder parse_write_order(const std::string& text);

struct WriteResult {
  std::vector<WrittenShard> shards = {};
  std::string error = {};  // empty if everything was written
  bool no_room = false;    // the error is a NoRoom
};
std::string to_text(const WriteResult& result);
WriteResult parse_write_result(const std::string& text);

}  // namespace gyre
