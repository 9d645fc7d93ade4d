#include "gyre/report/prometheus.h"

#include <fmt/format.h>

#include "gyre/core/timing.h"
#include "gyre/report/metrics_follower.h"

namespace gyre {
namespace {

// Escapes a label's value for the text format: backslash, quote and newline.
std::string label(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return text;
}

std::string head(const char* metric, const char* help) {
  return fmt::format("# HELP {0} {1}.\n# TYPE {0} gauge\n", metric, help);
}

}  // namespace

PrometheusFile::PrometheusFile(std::filesystem::path path, const std::string& run, int64_t updates,
                               const std::filesystem::path& metrics, FileSystem& files)
    : path_(std::move(path)), run_(label(run)), updates_(updates), files_(files) {
  MetricsFollower(metrics, "put it right").read([] {}, [this](const MetricsLine& line) { take(line); });
  running_ = true;
}

void PrometheusFile::hear(const MetricsLine& line) {
  take(line);
  write();
}

void PrometheusFile::take(const MetricsLine& line) {
  if (line.is("step")) step_ = line.step();
  if (line.is("checkpoint")) saved_ = line.step();
  if (line.is("end")) running_ = false;
  // What this line does not have is not known any more: a number was not finite, or the run was cut into fewer stages.
  std::erase_if(latest_, [&](const auto& entry) { return line.is(entry.first.first->event); });
  for (const Scalar& scalar : scalars_of(line)) latest_[{scalar.kind, scalar.index}] = scalar.value;
}

std::string PrometheusFile::text() const {
  std::string text;
  const auto add = [&](const char* metric, const char* help, const std::string& value) {
    text += head(metric, help) + fmt::format("{}{{run=\"{}\"}} {}\n", metric, run_, value);
  };
  const double now = unix_seconds();
  add("gyre_step", "Updates made", std::to_string(step_));
  add("gyre_updates", "Updates in the whole run", std::to_string(updates_));
  add("gyre_checkpoint_step", "Updates made at the last checkpoint", std::to_string(saved_));
  add("gyre_running", "1 while a session trains", running_ ? "1" : "0");
  add("gyre_written_timestamp_seconds", "When this was written", fmt::format("{:.3f}", now));
  for (const ScalarKind& kind : kScalarKinds) {
    // All values of this kind, in the order of their indices.
    auto found = latest_.lower_bound({&kind, 0});
    if (found == latest_.end() || found->first.first != &kind) continue;
    text += head(kind.metric, kind.help);
    for (; found != latest_.end() && found->first.first == &kind; ++found) {
      const std::string index_label =
          kind.index[0] == '\0' ? "" : fmt::format(",{}=\"{}\"", kind.index, found->first.second);
      text += fmt::format("{}{{run=\"{}\"{}}} {}\n", kind.metric, run_, index_label, found->second);
    }
  }
  return text;
}

// Not synced to disk: whatever a crash of the machine loses is in metrics.jsonl.
void PrometheusFile::write() const {
  replace_file(path_, text(), files_);  // node-exporter reads only *.prom, not *.tmp
}

}  // namespace gyre
