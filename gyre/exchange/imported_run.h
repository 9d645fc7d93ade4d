// The run that an import makes, in whatever files its model came: a run that has made no update yet.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "gyre/core/file_system.h"
#include "gyre/exchange/hugging_face/correspondence.h"
#include "gyre/exchange/hugging_face/provenance.h"
#include "gyre/exchange/import_model.h"
#include "gyre/exchange/new_directory.h"
#include "gyre/model/settings/model_settings.h"
#include "gyre/tokenizers/tokenizer_model.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// Reads the parameter of that name and shape, in fp32.
using ReadParameter = std::function<at::Tensor(const std::string& name, const std::vector<int64_t>& shape)>;

class ImportedRun {
 public:
  // The configuration has the model's shape, the precision that suits `dtype` ("BF16": bf16), and defaults. Throws
  // InputError if something is at `out`.
  ImportedRun(const std::filesystem::path& out, const ModelSettings& settings, const std::string& dtype,
              FileSystem& files);

  // Where it is built.
  const RunDirectory& directory() const { return run_; }
  // The configuration, and a checkpoint of step 0. Holds one parameter at a time.
  void write_weights(const std::vector<OwnTensor>& own, const ReadParameter& read, const std::stop_token& stop);
  // The types that the tensors came in, so that an export can write the same bytes again.
  void write_dtypes(const Provenance& provenance);
  void write_tokenizer(const TokenizerModel& model, int64_t vocabulary);
  // train.toml; then the run has its name. If this is not called, nothing stays.
  void complete();

 private:
  FileSystem& files_;
  std::filesystem::path final_;  // absolute
  Config config_;
  NewDirectory out_;
  RunDirectory run_;
};

// [model] context of the run: `asked` (--context), or if that is 0 the model's own. With learned positions the context
// is fixed; rotary positions allow any shorter one, and without --context take at most kUsualContext. Throws
// InputError.
int64_t choose_context(const ModelSettings& settings, int64_t asked, const std::string& origin);

// What is told of a tokenizer that becomes the run's. files: those that it was read from.
ImportedTokenizer describe(const TokenizerModel& model, std::vector<std::string> files, const std::string& origin);

// Whether all values are finite.
bool is_finite(const at::Tensor& values);
// The end of an error about values that are not.
inline constexpr const char* kNotFinite =
    "has values that are not finite numbers; get the model again, or take a checkpoint from before its training "
    "diverged";

}  // namespace gyre
