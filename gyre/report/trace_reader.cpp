#include "gyre/report/trace_reader.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "gyre/core/descriptor.h"
#include "gyre/core/error.h"
#include "gyre/core/text.h"

namespace gyre {
namespace {

constexpr double kMinWait = 0.5;  // microseconds; a shorter gap is not a wait
constexpr int kStretches = 25;    // number of stretches that a thinned timeline has
constexpr size_t kMaxTracks = 4096;

struct Event {
  std::string name, category, phase, id;
  int64_t process = 0, thread = 0;
  double at = 0, duration = 0;
  int64_t stage = -1;
  std::string label;  // args.name of a metadata event
};

// Parses events one at a time, so that a trace with a million events needs little memory besides its text.
class EventReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit EventReader(std::function<void(const Event&)> visit) : visit_(std::move(visit)) {}

  bool is_trace() const { return found_events_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value), static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX)));
  }
  bool number_float(number_float_t value, const string_t&) override {
    return number(value, std::abs(value) < 9e18 ? static_cast<int64_t>(value) : 0);
  }
  bool string(string_t& value) override {
    if (in_event()) {
      if (key_ == "name") event_.name = value;
      if (key_ == "cat") event_.category = value;
      if (key_ == "ph") event_.phase = value;
      if (key_ == "id") event_.id = value;
      if (key_ == "tid") event_.thread = number_of(value);
      if (key_ == "pid") event_.process = number_of(value);
    } else if (in_args() && key_ == "name") {
      event_.label = value;
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override {
    ++depth_;
    if (in_event()) event_ = {};
    if (depth_ == events_depth_ + 2) in_args_ = key_ == "args";
    return true;
  }
  bool end_object() override {
    if (in_event() && !event_.phase.empty()) visit_(event_);
    --depth_;
    return true;
  }
  // The events are the list "traceEvents", or the whole file.
  bool start_array(size_t) override {
    ++depth_;
    if (!found_events_ && (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents"))) {
      events_depth_ = depth_;
      found_events_ = in_list_ = true;
    }
    return true;
  }
  bool end_array() override {
    if (depth_ == events_depth_) in_list_ = false;
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    key_ = value;
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool in_event() const { return in_list_ && depth_ == events_depth_ + 1; }
  bool in_args() const { return in_list_ && depth_ == events_depth_ + 2 && in_args_; }
  // A number for a process or thread that is identified by a string.
  int64_t number_of(const std::string& word) {
    return words_.emplace(word, static_cast<int64_t>(words_.size()) + (int64_t{1} << 40)).first->second;
  }
  bool number(double value, int64_t whole) {
    if (in_event()) {
      if (key_ == "ts") event_.at = value;
      if (key_ == "dur") event_.duration = value;
      if (key_ == "pid") event_.process = whole;
      if (key_ == "tid") event_.thread = whole;
      if (key_ == "id") event_.id = fmt::format("{}", whole);
    } else if (in_args() && key_ == "stage") {
      event_.stage = whole;
    }
    return true;
  }

  std::function<void(const Event&)> visit_;
  std::string key_;
  Event event_;
  int depth_ = 0, events_depth_ = 0;
  bool found_events_ = false, in_list_ = false, in_args_ = false;
  std::map<std::string, int64_t> words_;
};

struct Message {
  std::optional<double> sent, taken, came;
  int64_t from = -1, to = -1;
  bool is_gradient = false;
};

class Builder {
 public:
  explicit Builder(std::string origin) : origin_(std::move(origin)) {}

  void take(const Event& event) {
    if (!std::isfinite(event.at) || !std::isfinite(event.duration)) return;
    if (event.phase == "X") {
      TraceTrack& track = track_of(event);
      track.slices.push_back(
          {printable(event.name), event.category, event.at, event.at + std::max(0.0, event.duration), event.stage});
    } else if (event.phase == "M" && event.name == "thread_name") {
      track_of(event).name = printable(event.label);
    } else if (event.phase == "s" || event.phase == "f") {
      Message& message = messages_[event.id];
      const auto track = static_cast<int64_t>(index_of(event));
      (event.phase == "s" ? message.sent : message.taken) = event.at;
      (event.phase == "s" ? message.from : message.to) = track;
      message.is_gradient = event.name == "gradient";
    } else if (event.phase == "e" && event.name == "under way") {
      messages_[event.id].came = event.at;
    }
  }

  Trace finish() {
    // Of slices that start together, one that the others lie in comes before them, and what takes no time before all.
    const auto place_of = [](const TraceSlice& slice) {
      return std::tuple(slice.start, slice.end > slice.start, -slice.end);
    };
    const auto is_before = [&](const TraceSlice& a, const TraceSlice& b) { return place_of(a) < place_of(b); };
    bool first = true;
    for (TraceTrack& track : trace_.tracks) {
      std::stable_sort(track.slices.begin(), track.slices.end(), is_before);
      trace_.total += static_cast<int64_t>(track.slices.size());
      for (const TraceSlice& slice : track.slices) {
        trace_.begin = first ? slice.start : std::min(trace_.begin, slice.start);
        trace_.end = first ? slice.end : std::max(trace_.end, slice.end);
        first = false;
      }
    }
    if (trace_.total == 0) {
      throw InputError(
          fmt::format("{}: has no slices (events with \"ph\": \"X\"); give a trace that gyre train --trace "
                      "or gyre simulate --trace wrote",
                      origin_));
    }
    std::map<std::pair<int64_t, double>, const Message*>
        taken;  // (track, start of the action that needs it) -> message
    for (const auto& [id, message] : messages_) {
      if (!message.sent || !message.taken) continue;
      taken[{message.to, *message.taken}] = &message;
      trace_.arrows.push_back({static_cast<size_t>(message.from), static_cast<size_t>(message.to), *message.sent,
                               *message.taken, message.is_gradient});
    }
    std::stable_sort(trace_.arrows.begin(), trace_.arrows.end(), [](const auto& a, const auto& b) {
      return std::pair(a.sent, a.from) < std::pair(b.sent, b.from);
    });
    for (size_t i = 0; i < trace_.tracks.size(); ++i) add_waits(i, taken);
    return std::move(trace_);
  }

 private:
  size_t index_of(const Event& event) {
    const auto [found, is_new] = tracks_.emplace(std::pair(event.process, event.thread), trace_.tracks.size());
    if (is_new) {
      if (tracks_.size() > kMaxTracks)
        throw InputError(fmt::format("{}: has more than {} tracks", origin_, kMaxTracks));
      trace_.tracks.push_back({fmt::format("track {}", found->second), {}, {}});
    }
    return found->second;
  }
  TraceTrack& track_of(const Event& event) { return trace_.tracks[index_of(event)]; }

  void add_waits(size_t number, const std::map<std::pair<int64_t, double>, const Message*>& taken) {
    TraceTrack& track = trace_.tracks[number];
    double free_from = trace_.begin;
    const auto wait = [&](double start, double end, WaitReason reason, int64_t from = -1) {
      if (end - start > kMinWait) track.waits.push_back({start, end, reason, from});
    };
    for (const TraceSlice& slice : track.slices) {
      const double from = std::exchange(free_from, std::max(free_from, slice.end));
      if (slice.start - from <= kMinWait) continue;
      const auto found = taken.find({static_cast<int64_t>(number), slice.start});
      double explained = from;  // the gap's cause is known up to this time
      if (found != taken.end()) {
        const Message& message = *found->second;
        const double sent = std::clamp(*message.sent, from, slice.start);
        wait(from, sent, message.is_gradient ? WaitReason::Gradient : WaitReason::Activation, message.from);
        explained = sent;
        if (message.came) {
          const double came = std::clamp(*message.came, explained, slice.start);
          wait(explained, came, WaitReason::Link, message.from);
          explained = came;
        }
      }
      const bool updates = slice.category == "update", adopts = slice.category == "adopt";
      wait(explained, slice.start, updates ? WaitReason::Update : adopts ? WaitReason::Version : WaitReason::Other);
    }
    wait(free_from, trace_.end, WaitReason::End);
  }

  std::string origin_;
  Trace trace_;
  std::map<std::pair<int64_t, int64_t>, size_t> tracks_;
  std::map<std::string, Message> messages_;  // by id; sorted, so that the result has a fixed order
};

// A file's bytes, one after the other, of which a block is in memory.
class FileBytes {
 public:
  explicit FileBytes(std::filesystem::path path) : path_(std::move(path)), file_(path_, O_RDONLY) {
    if (!file_.ok()) throw InputError(fmt::format("{}: cannot be opened: {}", path_.string(), reason()));
    next();
  }
  char byte() const { return block_[at_]; }
  bool has_ended() const { return at_ == block_.size(); }
  void next() {
    if (++at_ < block_.size()) return;
    at_ = 0;
    block_.resize(kBlock);
    const ssize_t got = read_fully(file_.get(), block_.data(), kBlock);
    if (got < 0) throw InputError(fmt::format("{}: cannot be read: {}", path_.string(), reason()));
    block_.resize(static_cast<size_t>(got));
  }

 private:
  static constexpr size_t kBlock = size_t{1} << 20;
  std::filesystem::path path_;
  Descriptor file_;
  std::string block_;
  size_t at_ = 0;
};

// Without a file: the end of any.
class FileIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit FileIterator(FileBytes* file = nullptr) : file_(file) {}
  char operator*() const { return file_->byte(); }
  FileIterator& operator++() {
    file_->next();
    return *this;
  }
  bool operator==(const FileIterator& other) const { return has_ended() == other.has_ended(); }

 private:
  bool has_ended() const { return file_ == nullptr || file_->has_ended(); }
  FileBytes* file_;
};

template <typename Iterator>
Trace parse(Iterator begin, Iterator end, const std::string& origin) {
  Builder builder(origin);
  EventReader reader([&](const Event& event) { builder.take(event); });
  if (!nlohmann::json::sax_parse(begin, end, &reader) || !reader.is_trace()) {
    throw InputError(
        fmt::format("{}: is no trace in Chrome's format (JSON with \"traceEvents\"); give one that gyre "
                    "train --trace or gyre simulate --trace wrote",
                    origin));
  }
  return builder.finish();
}

}  // namespace

const char* to_string(WaitReason reason) {
  constexpr const char* kNames[kWaitReasons] = {"activation", "gradient", "link", "update", "version", "other", "end"};
  return kNames[static_cast<size_t>(reason)];
}

Trace parse_trace(std::string_view text, const std::string& origin) {
  return parse(text.begin(), text.end(), origin);
}

Trace read_trace(const std::filesystem::path& path) {
  FileBytes file(path);
  return parse(FileIterator(&file), FileIterator(), path.string());
}

Trace thinned(Trace trace, int64_t max_slices) {
  if (trace.total <= max_slices || trace.end <= trace.begin) return trace;
  const double share = static_cast<double>(max_slices) / static_cast<double>(trace.total);
  const double stretch = (trace.end - trace.begin) / kStretches;
  const auto stays = [&](double start, double end) {
    const double first = std::floor((start - trace.begin) / stretch);
    const double last = std::floor((end - trace.begin) / stretch);
    return first == last && (end - trace.begin) - last * stretch <= share * stretch;
  };
  for (int i = 0; i < kStretches; ++i) {
    trace.left_out.emplace_back(trace.begin + (i + share) * stretch, trace.begin + (i + 1) * stretch);
  }
  for (TraceTrack& track : trace.tracks) {
    std::erase_if(track.slices, [&](const TraceSlice& slice) { return !stays(slice.start, slice.end); });
    std::erase_if(track.waits, [&](const TraceWait& wait) { return !stays(wait.start, wait.end); });
  }
  std::erase_if(trace.arrows, [&](const TraceArrow& arrow) { return !stays(arrow.sent, arrow.taken); });
  return trace;
}

}  // namespace gyre
