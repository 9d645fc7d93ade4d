// Writes TensorBoard's event files: records framed as TFRecord, each an Event of TensorBoard's protocol buffers with
// scalars. They are made from the lines of metrics.jsonl alone, so that a resumed session can write them again.
#pragma once

#include <cstdint>
#include <filesystem>
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
std::string tensorboard_version(double wall_time);                      // the first event of a file
std::string tensorboard_session_start(double wall_time, int64_t step);  // earlier events from `step` on are void
std::string tensorboard_scalars(double wall_time, int64_t step, const std::vector<Scalar>& scalars);

class TensorBoardWriter final : public MetricsListener {
 public:
  // Creates `directory` and replaces the event files in it by a new one, which sorts after them and has the events of
  // the file `metrics`, which may be missing and was last written at `last_written`. It holds a piece of it at a time.
  // The times of these events are counted back from then by the lines' seconds, as if sessions had followed each other
  // without a break. Throws InputError if the directory cannot be created, RunError if the file cannot be written.
  TensorBoardWriter(const std::filesystem::path& directory, const std::filesystem::path& metrics, double last_written,
                    FileSystem& files = system_files());
  void hear(const MetricsLine& line) override;

 private:
  std::unique_ptr<OutputFile> file_;
};

}  // namespace gyre
