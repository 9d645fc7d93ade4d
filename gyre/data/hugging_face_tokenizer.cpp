#include "gyre/data/hugging_face_tokenizer.h"

#include "gyre/core/files.h"
#include "gyre/data/dataset.h"
#include "gyre/tokenizers/hugging_face_files.h"

namespace gyre {

void write_hugging_face_tokenizer(const std::filesystem::path& run_or_data, const std::filesystem::path& out,
                                  FileSystem& files) {
  const auto in_run = run_or_data / "tokenizer";
  const auto directory = is_there(in_run / kMetaFile) ? in_run : run_or_data;
  const HuggingFaceFiles written = hugging_face_files(load_tokenizer_model(directory), directory.string());
  write_file_atomic(out / kTokenizerJsonFile, written.tokenizer, files);
  write_file_atomic(out / kTokenizerConfigFile, written.tokenizer_config, files);
  write_file_atomic(out / "special_tokens_map.json", written.special_tokens_map, files);
}

}  // namespace gyre
