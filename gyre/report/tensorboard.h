// TensorBoard's event files: records framed as TFRecord, each an Event of its protocol buffers with scalars. They are
// made of the lines of metrics.jsonl alone, so that a session that goes on can write them anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gyre/core/files.h"
#include "gyre/report/metrics.h"
#include "gyre/report/scalars.h"

namespace gyre {

// The bytes of one record: its length, the length's checksum, the data, the data's checksum (both masked CRC-32C).
std::string tensorboard_record(std::string_view data);
// Events as bytes. wall_time: seconds since 1970.
std::string tensorboard_version(double wall_time);                      // the first of a file
std::string tensorboard_session_start(double wall_time, int64_t step);  // what was told of `step` on no longer holds
std::string tensorboard_scalars(double wall_time, int64_t step, const std::vector<Scalar>& scalars);

class TensorBoardWriter final : public MetricsListener {
 public:
  // Replaces the event files in `directory`, which it makes, by one that comes after them and has what `metrics` says,
  // the text of a metrics.jsonl that was last written to at `last_written`. Times of those events are counted back from
  // there by the lines' seconds, as if no session had waited for the next. InputError where the directory cannot be
  // made, RunError where the file cannot be written.
  TensorBoardWriter(const std::filesystem::path& directory, std::string_view metrics, double last_written,
                    FileSystem& files = system_files());
  void hear(const MetricsLine& line) override;

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace gyre
