#include "gyre/report/live.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/host_name.h"
#include "gyre/core/json_fields.h"
#include "gyre/core/json_text.h"
#include "gyre/core/process_space.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kStates = {"starting", "training", "evaluating", "saving"};
constexpr std::array kEnds = {"finished", "interrupted", "diverged", "failed"};
// A process that cannot be looked at counts as gone after this many periods of silence, and at least this many
// seconds.
constexpr double kSilentPeriods = 10, kSilentSeconds = 60;
// The longest lists that are accepted.
constexpr size_t kMaxEntries = 100'000;

Json to_object(const LiveWorker& worker) {
  Json waits = Json::array();
  for (const LiveWorker::Wait& wait : worker.waits) {
    waits.push_back(
        {{"worker", wait.worker < 0 ? Json(nullptr) : Json(wait.worker)}, {"share", json_number(wait.share)}});
  }
  return {{"worker", worker.worker},
          {"process", worker.process},
          {"action", worker.action},
          {"needs", worker.needs},
          {"busy", json_number(worker.busy)},
          {"waits", waits},
          {"activations", worker.activations},
          {"gradients", worker.gradients},
          {"others", worker.others}};
}

Json to_object(const LiveProcess& process) {
  return {{"resident_bytes", process.resident},
          {"peak_resident_bytes", process.peak_resident},
          {"tensor_bytes", process.tensors},
          {"peak_tensor_bytes", process.peak_tensors}};
}

// Rejects times so large that they cannot be displayed; no run has them.
void check_seconds(JsonFields<Json>& fields, const char* key, double seconds) {
  if (!(std::abs(seconds) <= 1e11)) fields.fail(fmt::format("'{}' is {}", key, seconds));
}

void need_seconds(JsonFields<Json>& fields, const char* key, double& seconds) {
  fields.need(key, seconds);
  check_seconds(fields, key, seconds);
}

// Reads a field that may be missing or null.
void read(JsonFields<Json>& fields, const char* key, std::optional<double>& value) {
  const Json* found = fields.find(key);
  if (found == nullptr || found->is_null()) return;
  if (!found->is_number()) fields.fail(fmt::format("'{}' must be a number, or null", key));
  value = found->get<double>();
}

const Json& list(JsonFields<Json>& fields, const char* key) {
  const Json& found = fields.at(key);
  if (!found.is_array()) fields.fail(fmt::format("'{}' must be a list", key));
  if (found.size() > kMaxEntries) fields.fail(fmt::format("'{}' has {} entries", key, found.size()));
  return found;
}

LiveWorker read_worker(const Json& object, const std::string& where) {
  JsonFields<Json> fields(object, where);
  LiveWorker worker;
  fields.need("worker", worker.worker);
  fields.need("process", worker.process);
  fields.need("action", worker.action);
  fields.need("needs", worker.needs);
  worker.action = printable(worker.action);
  worker.needs = printable(worker.needs);
  read(fields, "busy", worker.busy);
  for (const Json& entry : list(fields, "waits")) {
    JsonFields<Json> wait(entry, where + ": waits");
    LiveWorker::Wait& read = worker.waits.emplace_back();
    if (!wait.at("worker").is_null()) wait.need("worker", read.worker);
    wait.need("share", read.share);
  }
  fields.need("activations", worker.activations);
  fields.need("gradients", worker.gradients);
  fields.need("others", worker.others);
  return worker;
}

LiveProcess read_process(const Json& object, const std::string& where) {
  JsonFields<Json> fields(object, where);
  LiveProcess process;
  fields.need("resident_bytes", process.resident);
  fields.need("peak_resident_bytes", process.peak_resident);
  fields.need("tensor_bytes", process.tensors);
  fields.need("peak_tensor_bytes", process.peak_tensors);
  return process;
}

}  // namespace

bool LiveRun::ended() const {
  return std::ranges::find(kEnds, state) != kEnds.end();
}

std::string to_json(const LiveRun& run) {
  Json json = {{"state", run.state},
               {"written", json_number(run.written)},
               {"period", json_number(run.period)},
               {"host", run.host},
               {"pid", run.pid},
               {"pid_started", run.pid_started},
               {"pid_space", run.pid_space},
               {"step", run.step},
               {"updates", run.updates},
               {"tokens", run.tokens},
               {"loss", json_number(run.loss)},
               {"val_loss", json_number(run.val_loss)},
               {"lr", json_number(run.lr)},
               {"grad_norm", json_number(run.grad_norm)},
               {"tokens_per_second", json_number(run.tokens_per_second)},
               {"seconds_left", json_number(run.seconds_left)},
               {"seconds", json_number(run.seconds)}};
  for (const char* key : {"delays", "workers", "processes"}) json[key] = Json::array();
  for (const auto& delay : run.delays) json["delays"].push_back(json_number(delay));
  for (const LiveWorker& worker : run.workers) json["workers"].push_back(to_object(worker));
  for (const LiveProcess& process : run.processes) json["processes"].push_back(to_object(process));
  return json_text(json) + "\n";
}

LiveRun parse_live_run(std::string_view text, const std::string& origin) {
  const auto json = parse_json<Json>(text);
  if (!json) throw InputError(fmt::format("{}: is damaged: no JSON is in it", origin));
  JsonFields<Json> fields(*json, fmt::format("{}: is damaged", origin));
  LiveRun run;
  fields.need("state", run.state);
  if (!run.ended() && std::ranges::find(kStates, run.state) == kStates.end()) {
    fields.fail(fmt::format("'state' is '{}'", printable(run.state)));
  }
  need_seconds(fields, "written", run.written);
  need_seconds(fields, "period", run.period);
  fields.need("host", run.host);
  fields.need("pid", run.pid);
  fields.need("pid_started", run.pid_started);
  fields.read("pid_space", run.pid_space);
  fields.need("step", run.step);
  fields.need("updates", run.updates);
  fields.need("tokens", run.tokens);
  read(fields, "loss", run.loss);
  read(fields, "val_loss", run.val_loss);
  read(fields, "lr", run.lr);
  read(fields, "grad_norm", run.grad_norm);
  read(fields, "tokens_per_second", run.tokens_per_second);
  read(fields, "seconds_left", run.seconds_left);
  if (run.seconds_left) check_seconds(fields, "seconds_left", *run.seconds_left);
  need_seconds(fields, "seconds", run.seconds);
  for (const Json& delay : list(fields, "delays")) {
    if (!delay.is_null() && !delay.is_number()) fields.fail("'delays' must be numbers");
    run.delays.push_back(delay.is_null() ? std::nullopt : std::optional(delay.get<double>()));
  }
  for (const Json& worker : list(fields, "workers")) {
    run.workers.push_back(read_worker(worker, fmt::format("{}: is damaged: workers[{}]", origin, run.workers.size())));
  }
  for (const Json& process : list(fields, "processes")) {
    run.processes.push_back(
        read_process(process, fmt::format("{}: is damaged: processes[{}]", origin, run.processes.size())));
  }
  return run;
}

// Field 22 of /proc/PID/stat. Field 2, the name, may contain anything and ends at the last ')'. State Z behind it is a
// zombie: the process has ended.
std::optional<int64_t> process_started(int64_t pid) {
  std::string text;
  try {
    text = read_file(fmt::format("/proc/{}/stat", pid));
  } catch (const InputError&) {
    return std::nullopt;
  }
  size_t at = text.rfind(')');
  if (at != std::string::npos && text.compare(at, 4, ") Z ") == 0) return std::nullopt;
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  int64_t started = 0;
  if (at == std::string::npos ||
      std::from_chars(text.data() + at + 1, text.data() + text.size(), started).ec != std::errc{}) {
    return std::nullopt;
  }
  return started;
}

namespace {

// Whether there is such a process, of another user. Where /proc hides those (its option hidepid), all else about it is
// unknown.
bool is_of_another_user(int64_t pid) {
  return ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == EPERM;
}

}  // namespace

bool is_in_sight(const LiveRun& run) {
  const bool is_here = run.host == host_name() && run.pid_space == process_space();
  return is_here && (process_started(run.pid) || !is_of_another_user(run.pid));
}

bool is_gone(const LiveRun& run, double now) {
  if (run.ended()) return false;
  if (is_in_sight(run)) return process_started(run.pid) != run.pid_started;
  return now - run.written > std::max(kSilentSeconds, kSilentPeriods * run.period);
}

}  // namespace gyre
