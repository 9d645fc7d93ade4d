#include "gyre/report/metrics_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_fields.h"
#include "gyre/report/metrics_follower.h"

namespace gyre {
namespace {

using nlohmann::json;

// A field with a wrong type or value; for_each_metrics_line() adds where it is.
struct FieldError : std::runtime_error {
  FieldError(const char* field, const char* wanted)
      : std::runtime_error(fmt::format("its \"{}\" is not {}", field, wanted)) {}
};

const json* find(const json& fields, const char* field) {
  const auto found = fields.find(field);
  return found == fields.end() ? nullptr : &*found;
}

// Whether it is a whole number that int64_t can hold.
bool is_integer(const json& value) {
  constexpr auto kMaxValue = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  return value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= kMaxValue);
}

std::string advice_on(const std::filesystem::path& metrics) {
  return fmt::format("put back what was there, or empty the file (: >{}) to continue without a record of these steps",
                     metrics.string());
}

}  // namespace

bool MetricsLine::is(std::string_view event) const {
  const json* found = find(fields_, "event");
  return found != nullptr && found->is_string() && found->get_ref<const std::string&>() == event;
}

int64_t MetricsLine::step() const {
  if (find(fields_, "step") == nullptr) throw FieldError("step", "there");
  return integer("step");
}

int64_t MetricsLine::integer(const char* field) const {
  const json* found = find(fields_, field);
  if (found == nullptr) return 0;
  if (!is_integer(*found)) throw FieldError(field, "a whole number");
  return found->get<int64_t>();
}

std::optional<double> MetricsLine::real(const char* field) const {
  const json* found = find(fields_, field);
  if (found == nullptr || found->is_null()) return std::nullopt;
  if (!found->is_number()) throw FieldError(field, "a number");
  return found->get<double>();
}

std::vector<std::optional<double>> MetricsLine::reals(const char* field) const {
  std::vector<std::optional<double>> values;
  const json* found = find(fields_, field);
  if (found == nullptr) return values;
  if (!found->is_array()) throw FieldError(field, "an array");
  for (const json& value : *found) {
    if (!value.is_null() && !value.is_number()) throw FieldError(field, "an array of numbers");
    values.push_back(value.is_null() ? std::nullopt : std::optional(value.get<double>()));
  }
  return values;
}

std::string MetricsLine::word(const char* field) const {
  const json* found = find(fields_, field);
  if (found == nullptr) return "";
  if (!found->is_string()) throw FieldError(field, "a string");
  return found->get<std::string>();
}

std::map<int64_t, int64_t> MetricsLine::counts(const char* field) const {
  std::map<int64_t, int64_t> result;
  const json* found = find(fields_, field);
  if (found == nullptr) return result;
  if (!found->is_object()) throw FieldError(field, "an object");
  for (const auto& [key, value] : found->items()) {
    int64_t number = 0;
    const auto [rest, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    const bool is_number = error == std::errc() && rest == key.data() + key.size() && number >= 0;
    if (!is_number || !is_integer(value) || value.get<int64_t>() < 0) {
      throw FieldError(field, "an object of counts by whole number");
    }
    result[number] = value.get<int64_t>();
  }
  return result;
}

MetricsEnd MetricsLine::end() const {
  MetricsEnd end;
  end.status = word("status");
  end.step = step();
  end.loss = real("loss").value_or(std::numeric_limits<double>::quiet_NaN());
  end.val_loss = real("val_loss");
  end.ema_val_loss = real("ema_val_loss");
  end.tokens = integer("tokens");
  end.tokens_per_second = real("tokens_per_second");
  end.bubble_fraction = real("bubble_fraction");
  end.skipped_updates = integer("skipped_updates");
  end.seconds = real("seconds").value_or(0);
  end.save_wait_seconds = real("save_wait_seconds").value_or(0);
  end.save_write_seconds = real("save_write_seconds").value_or(0);
  return end;
}

double SessionClock::at(const MetricsLine& line) {
  const bool has_time = line.is("step") || line.is("end");
  const double seconds = has_time ? line.real("seconds").value_or(session_) : session_;
  // Older versions of gyre wrote no "resume" line, so a decrease of the seconds also begins a session.
  if (line.is("resume") || seconds < session_) before_ += std::exchange(session_, 0);
  session_ = has_time ? seconds : session_;
  return before_ + session_;
}

void for_each_metrics_line(std::string_view text, const std::string& origin, const std::string& advice,
                           const std::function<void(const MetricsLine&)>& visit, int64_t before) {
  int64_t number = before;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    if (end == std::string_view::npos) return;  // torn
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    const std::optional<json> fields = parse_json(line);
    if (!fields || !fields->is_object() || !fields->contains("event")) {
      throw InputError(fmt::format("{}:{}: is not a line of metrics; {}", origin, number, advice));
    }
    try {
      visit(MetricsLine(number, line, *fields));
    } catch (const FieldError& error) {
      throw InputError(fmt::format("{}:{}: {}; {}", origin, number, error.what(), advice));
    }
  }
}

bool is_kept(const MetricsLine& line, int64_t step) {
  return !line.is("end") && !line.is("delay") && line.integer("step") <= step;
}

namespace {

// Makes a RunRecord from the lines of a file, in their order.
class RecordReader {
 public:
  RecordReader(const std::filesystem::path& metrics, int64_t upto) : metrics_(metrics.string()), upto_(upto) {}

  void take(const MetricsLine& line) {
    lines_ = line.number();
    count_kept(line);
    record_.end.reset();
    if (line.is("end")) {
      record_.end = line.end();
    } else if (line.is("checkpoint")) {
      record_.last_checkpoint = line.step();
    } else if (line.is("resume")) {
      if (line.step() > 0) record_.last_checkpoint = line.step();
      if (line.number() == 1) expected_ = line.step() + 1;
    } else if (line.is("eval") && line.step() <= upto_) {
      record_.val_loss = line.real("val_loss");
      record_.ema_val_loss = line.real("ema_val_loss");
      record_.evaluated = line.step();
    } else if (line.is("step")) {
      take_step(line);
    }
  }

  // is_empty: the file has no bytes.
  RunRecord finish(bool is_empty) const {
    if (expected_ <= upto_ && !is_empty) {
      throw InputError(fmt::format("{}:{}: the lines of steps {} to {} are missing; {}", metrics_, lines_ + 1,
                                   expected_, upto_, advice_on(metrics_)));
    }
    return record_;
  }

 private:
  void take_step(const MetricsLine& line) {
    record_.newest_step = line.step();
    if (line.step() > upto_) return;
    if (line.step() != expected_) {
      throw InputError(fmt::format("{}:{}: has step {}, where step {} must come next; {}", metrics_, line.number(),
                                   line.step(), expected_, advice_on(metrics_)));
    }
    ++expected_;
    record_.loss = line.real("loss");
    record_.lr = line.real("lr");
    record_.tokens = line.integer("tokens");
  }

  void count_kept(const MetricsLine& line) {
    all_are_kept_ = all_are_kept_ && is_kept(line, upto_);
    if (!all_are_kept_) return;
    record_.kept.bytes += line.text().size() + 1;
    record_.kept.lines = line.number();
  }

  std::string metrics_;
  int64_t upto_;
  RunRecord record_;
  int64_t expected_ = 1;  // the step whose line must come next
  int64_t lines_ = 0;
  bool all_are_kept_ = true;
};

}  // namespace

RunRecord read_record(const std::filesystem::path& metrics, int64_t upto) {
  if (upto == 0 && !std::filesystem::exists(metrics)) return {};
  if (!std::filesystem::exists(metrics)) {
    throw InputError(
        fmt::format("{}: is missing, with the lines of steps 1 to {}; {}", metrics.string(), upto, advice_on(metrics)));
  }
  RecordReader reader(metrics, upto);
  MetricsFollower(metrics, advice_on(metrics)).read([] {}, [&](const MetricsLine& line) { reader.take(line); });
  return reader.finish(InputFile(metrics).size() == 0);
}

}  // namespace gyre
