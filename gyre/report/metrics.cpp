#include "gyre/report/metrics.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/files.h"
#include "gyre/core/json_text.h"
#include "gyre/core/replace_in_pieces.h"
#include "gyre/report/metrics_follower.h"
#include "gyre/report/metrics_reader.h"

namespace gyre {
namespace {

using Json = nlohmann::ordered_json;

Json numbers(const std::vector<double>& values) {
  Json all = Json::array();
  for (const double value : values) all.push_back(json_number(value));
  return all;
}

constexpr uint64_t kPiece = uint64_t{4} << 20;  // bytes of a file that are in memory at once

using Take = std::function<void(std::string_view)>;

void copy_first(const std::filesystem::path& path, uint64_t bytes, const Take& take) {
  if (bytes == 0) return;
  const InputFile file(path);
  std::string piece;
  for (uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.resize(std::min(kPiece, bytes - at));
    file.read_at(at, piece.data(), piece.size());
    take(piece);
  }
}

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& path, FileSystem& files)
    : file_(path, O_WRONLY | O_CREAT | O_APPEND, files),
      whole_(static_cast<uint64_t>(::lseek(file_.descriptor(), 0, SEEK_END))) {
  sync_directory(path.has_parent_path() ? path.parent_path() : ".", files);
}

void MetricsWriter::write(const std::string& line) {
  // A full disk may have left part of a line; it is removed, so that this line does not follow it without a newline.
  if (torn_) file_.truncate(whole_);
  const std::string text = line + "\n";
  torn_ = true;
  file_.write(text.data(), text.size());
  torn_ = false;
  whole_ += text.size();
  if (listeners_.empty()) return;
  for_each_metrics_line(text, file_.path().string(), "put it right", [this](const MetricsLine& line) {
    for (MetricsListener* listener : listeners_) listener->hear(line);
  });
}

void MetricsWriter::sync() {
  file_.sync();
}

void MetricsWriter::check() const {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(file_.path(), error);
  if (!error && bytes == whole_) return;
  throw RunError(fmt::format("{}: was {} while the run was writing to it; put back what was there",
                             file_.path().string(), error ? "removed or moved" : "changed"));
}

void MetricsWriter::step(const MetricsStep& line) {
  write(Json{{"event", "step"},
             {"step", line.step},
             {"loss", json_number(line.loss)},
             {"lr", json_number(line.lr)},
             {"grad_norm", json_number(line.grad_norm)},
             {"tokens", line.tokens},
             {"tokens_per_second", json_number(line.tokens_per_second)},
             {"seconds", json_number(line.seconds)}}
            .dump());
}

void MetricsWriter::eval(int64_t step, double val_loss, std::optional<double> ema_val_loss) {
  Json line{{"event", "eval"}, {"step", step}, {"val_loss", json_number(val_loss)}};
  if (ema_val_loss) line["ema_val_loss"] = json_number(*ema_val_loss);
  write(line.dump());
}

void MetricsWriter::delay(int stage, const std::map<int64_t, int64_t>& histogram) {
  Json counts = Json::object();
  for (const auto& [delay, count] : histogram) counts[std::to_string(delay)] = count;
  write(Json{{"event", "delay"}, {"stage", stage}, {"histogram", counts}}.dump());
}

void MetricsWriter::drain(int64_t step, const std::string& reason) {
  write(Json{{"event", "drain"}, {"step", step}, {"reason", reason}}.dump());
}

void MetricsWriter::checkpoint(int64_t step, double wait_seconds, double write_seconds) {
  write(Json{{"event", "checkpoint"},
             {"step", step},
             {"wait_seconds", json_number(wait_seconds)},
             {"write_seconds", json_number(write_seconds)}}
            .dump());
  sync();
  check();
}

void MetricsWriter::segment(const MetricsSegment& line) {
  write(Json{{"event", "segment"},
             {"step", line.step},
             {"seconds", json_number(line.seconds)},
             {"bubbles", numbers(line.bubbles)},
             {"delays", numbers(line.delays)},
             {"peak_tensor_bytes", line.peak_tensor_bytes},
             {"peak_resident_bytes", line.peak_resident_bytes}}
            .dump());
}

void MetricsWriter::end(const MetricsEnd& line) {
  Json end{{"event", "end"},
           {"status", line.status},
           {"step", line.step},
           {"loss", json_number(line.loss)},
           {"val_loss", json_number(line.val_loss)},
           {"tokens", line.tokens},
           {"tokens_per_second", json_number(line.tokens_per_second)},
           {"bubble_fraction", json_number(line.bubble_fraction)},
           {"skipped_updates", line.skipped_updates},
           {"seconds", json_number(line.seconds)},
           {"save_wait_seconds", json_number(line.save_wait_seconds)},
           {"save_write_seconds", json_number(line.save_write_seconds)}};
  if (line.ema_val_loss) end["ema_val_loss"] = json_number(*line.ema_val_loss);
  write(end.dump());
}

void continue_metrics(const std::filesystem::path& path, int64_t step, const Json& changed, const FirstLines& kept,
                      FileSystem& files) {
  const auto write = [&](const Take& take) {
    copy_first(path, kept.bytes, take);
    std::string piece;
    const auto keep = [&](const MetricsLine& line) {
      if (is_kept(line, step)) piece.append(line.text()).append("\n");
      if (piece.size() >= kPiece) take(std::exchange(piece, {}));
    };
    MetricsFollower(path, "put it right", kept).read([] {}, keep);
    take(piece + Json{{"event", "resume"}, {"step", step}, {"changed", changed}}.dump() + "\n");
  };
  write_in_pieces_atomic(path, write, files);
}

}  // namespace gyre
