// Exports the tokenizer of a run, or of prepared text, for Hugging Face's AutoTokenizer.
#pragma once

#include <filesystem>

#include "gyre/core/file_system.h"

namespace gyre {

// Writes tokenizer.json, tokenizer_config.json and special_tokens_map.json to the existing directory `out`. Throws
// InputError if `run_or_data` has no tokenizer, or one that cannot be written in this form.
void write_hugging_face_tokenizer(const std::filesystem::path& run_or_data, const std::filesystem::path& out,
                                  FileSystem& files = system_files());

}  // namespace gyre
