// Reading metrics.jsonl: the one reader of all who need what a run wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/report/metrics.h"

namespace gyre {

// One line, and its fields by type. A field of another type than it is asked for makes the line unreadable.
class MetricsLine {
 public:
  MetricsLine(int64_t number, std::string_view text, const nlohmann::json& fields)
      : number_(number), text_(text), fields_(fields) {}
  int64_t number() const { return number_; }       // in the file, from 1
  std::string_view text() const { return text_; }  // without its newline
  bool is(std::string_view event) const;
  // The update that the line is about; it must say so.
  int64_t step() const;
  // Of a field that is missing: 0, nothing or "". Null, which stands for what was not finite, is nothing.
  int64_t integer(const char* field) const;
  std::optional<double> real(const char* field) const;
  // An array's elements, null being nothing.
  std::vector<std::optional<double>> reals(const char* field) const;
  std::string word(const char* field) const;
  // Of an object of whole numbers, {"0": 3, "2": 41}.
  std::map<int64_t, int64_t> counts(const char* field) const;
  // What an "end" line says.
  MetricsEnd end() const;

 private:
  int64_t number_;
  std::string_view text_;
  const nlohmann::json& fields_;
};

// Calls `visit` for every line of `text`. A last line without its newline was torn by a kill and is left out.
// InputError for a line that cannot be read: it names `origin` and the line, and says `advice`.
void for_each_metrics_line(std::string_view text, const std::string& origin, const std::string& advice,
                           const std::function<void(const MetricsLine&)>& visit);

// Seconds of training up to each line, all sessions together: a session's own begin at 0.
class SessionClock {
 public:
  // Of the lines in their order.
  double at(const MetricsLine& line);

 private:
  double before_ = 0, session_ = 0;  // of earlier sessions; the last seen in this one
};

// What a run's metrics say of it.
struct RunRecord {
  // In all lines.
  int64_t newest_step = 0;                 // of the last "step" line
  std::optional<int64_t> last_checkpoint;  // the last that was written, whether or not it is still there
  std::optional<MetricsEnd> end;           // if the last session came to its end
  // In those up to the update asked for.
  std::optional<double> loss;  // of its last step, where that was finite
  int64_t tokens = 0;
  std::optional<double> val_loss, ema_val_loss;  // of the last evaluation
  std::optional<int64_t> evaluated;              // the update it was made at
};

// `upto` is the update at which the run continues: each of 1 to `upto` must have its line, or InputError names file,
// line and step of the gap, and says what to do. Only an empty file may lack them all, and one that was continued when
// it was empty may begin with the "resume" line of that session.
RunRecord parse_record(std::string_view text, const std::filesystem::path& metrics, int64_t upto);
// The same of a file. One that is missing is empty where `upto` is 0.
RunRecord read_record(const std::filesystem::path& metrics, int64_t upto);

}  // namespace gyre
