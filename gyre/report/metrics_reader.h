// Reads metrics.jsonl. All code that needs a run's metrics uses this reader.
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

// One line, and its fields by type. Asking for a field with another type than it has makes the line unreadable.
class MetricsLine {
 public:
  MetricsLine(int64_t number, std::string_view text, const nlohmann::json& fields)
      : number_(number), text_(text), fields_(fields) {}
  int64_t number() const { return number_; }       // in the file, counted from 1
  std::string_view text() const { return text_; }  // without its newline
  bool is(std::string_view event) const;
  // The update that the line is about. The line must have the field "step".
  int64_t step() const;
  // The values of fields. A missing field gives 0, empty or "". Null, which stands for a number that is not finite,
  // gives empty.
  int64_t integer(const char* field) const;
  std::optional<double> real(const char* field) const;
  // The elements of an array; null gives empty.
  std::vector<std::optional<double>> reals(const char* field) const;
  std::string word(const char* field) const;
  // An object of counts by whole number, {"0": 3, "2": 41}; none is negative.
  std::map<int64_t, int64_t> counts(const char* field) const;
  // All fields of an "end" line.
  MetricsEnd end() const;

 private:
  int64_t number_;
  std::string_view text_;
  const nlohmann::json& fields_;
};

// Calls `visit` for every line of `text`, except a last line without a newline, which a kill has torn. Throws
// InputError for a line that cannot be read; its message has `origin`, the line's number and `advice`. before: the
// number of lines of the file that come before `text`.
void for_each_metrics_line(std::string_view text, const std::string& origin, const std::string& advice,
                           const std::function<void(const MetricsLine&)>& visit, int64_t before = 0);

// Whether a run that continues after `step` keeps the line.
bool is_kept(const MetricsLine& line, int64_t step);

// Seconds of training up to each line, summed over sessions: the file's "seconds" start at 0 in every session. They are
// those of the last update or, from an "end" line on, those of the whole session.
class SessionClock {
 public:
  // Call once per line, in file order.
  double at(const MetricsLine& line);
  double earlier() const { return before_; }  // those of all sessions but the current one

 private:
  double before_ = 0, session_ = 0;  // total of earlier sessions; latest value of the current session
};

// A summary of a run's metrics.
struct RunRecord {
  // From all lines.
  int64_t newest_step = 0;                 // of the last "step" line
  std::optional<int64_t> last_checkpoint;  // the last one written, whether or not it still exists
  std::optional<MetricsEnd> end;           // if the last session recorded its end
  // From the lines up to the update asked for.
  std::optional<double> loss;  // of the last step; empty if it was not finite
  std::optional<double> lr;    // of the last step
  int64_t tokens = 0;
  std::optional<double> val_loss, ema_val_loss;  // of the last evaluation
  std::optional<int64_t> evaluated;              // the update at which the last evaluation was made
  // The lines before the first one that a run that continues after that update does not keep.
  FirstLines kept;
};

// upto: the update at which the run continues. Each of the steps 1 to `upto` must have its line; otherwise throws
// InputError with file, line and step of the gap, and what to do. Exceptions: an empty file may lack all of them, and a
// file that was continued when it was empty may begin with that session's "resume" line.
// Of the file it holds a piece at a time. If `upto` is 0, the file may be missing.
RunRecord read_record(const std::filesystem::path& metrics, int64_t upto);

}  // namespace gyre
