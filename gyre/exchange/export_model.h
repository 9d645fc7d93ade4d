// gyre export: writes a run's model in the form that Hugging Face's transformers or llm.c reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"
#include "gyre/train/saved_averages.h"

namespace gyre {

enum class ExportFormat { Transformers, LlmC };
inline constexpr const char* kLlmcFile = "model.bin";  // what an export for llm.c writes

struct ExportOptions {
  std::filesystem::path run;
  std::filesystem::path out;
  ExportFormat format = ExportFormat::Transformers;
  std::optional<int64_t> step = {};  // which checkpoint; the newest if not given
  ModelWeights weights = ModelWeights::Trained;
  std::string dtype = "auto";  // fp32, bf16, fp16; auto: the imported types if no update was made since, else fp32
  int64_t shard_bytes = 5'000'000'000;  // at most, of tensors in one file, unless one tensor is larger
  std::stop_token stop = {};            // a stopped call removes what it wrote
  FileSystem* files = &system_files();
};
std::vector<std::string> export_dtypes();

struct ExportResult {
  std::string model_type;
  int64_t step = 0;
  int64_t parameters = 0;
  int64_t files = 0;  // of tensors
  std::vector<std::string> side_files;
};

// Holds one weight in memory at a time. If anything goes wrong, nothing is left at `out`. Throws InputError if there is
// no run, no checkpoint or no averages, for a weight beyond the type, and for a model that transformers or llm.c
// does not have; and Stopped (core/stopped.h).
ExportResult export_model(const ExportOptions& options);

}  // namespace gyre
