// What rank 0 and the other processes of a run say to each other of its state: JSON, a few lines each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gyre/train/state_share.h"

namespace gyre {

// Of the lines between two processes, the one of writers: they speak beside training.
inline constexpr int kSaves = 2;

struct ShareQuestion {
  enum class Kind {
    Look,     // does `token` lie in the run's directory?
    Weigh,    // how large is your share?
    Restore,  // restore your share from the checkpoint of `step`
    Take,     // hold your share as it is now, as a copy with `copy`; a writer will say where it is to go
  };
  Kind kind = Kind::Look;
  std::string token = {};
  int64_t step = 0;
  bool copy = false;
};
std::string to_text(const ShareQuestion& question);
ShareQuestion parse_share_question(const std::string& text);

struct ShareAnswer {
  enum class Outcome { Done, Damaged, Refused };
  Outcome outcome = Outcome::Done;
  std::string what;  // is damaged, or speaks against it
  bool sees_token = false;
  ShareSizes sizes;
  ShareParts parts;
};
std::string to_text(const ShareAnswer& answer);
ShareAnswer parse_share_answer(const std::string& text);

// To a writer: where its files go, within the directory of checkpoints.
struct WriteOrder {
  std::string directory;
  ShardNumbers numbers;
};
std::string to_text(const WriteOrder& order);
WriteOrder parse_write_order(const std::string& text);

struct WriteResult {
  std::vector<WrittenShard> shards;
  std::string error;  // empty: all is written
};
std::string to_text(const WriteResult& result);
WriteResult parse_write_result(const std::string& text);

}  // namespace gyre
