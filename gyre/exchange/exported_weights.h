// What an export writes: the weights of a checkpoint, and the types that they are written in.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "gyre/checkpoint/checkpoint.h"
#include "gyre/config/config.h"
#include "gyre/exchange/export_model.h"
#include "gyre/train/run_directory.h"

namespace gyre {

struct ExportType {
  const char* name;       // as --dtype calls it
  const char* in_file;    // in safetensors
  const char* in_config;  // in config.json
  at::ScalarType type;
};

// The type that each tensor is written in: the one that was asked for, or for "auto" the one that it was imported in if
// no update was made since, else fp32.
class ExportTypes {
 public:
  // Throws InputError for an unknown type.
  ExportTypes(const std::string& asked, const RunDirectory& run, int64_t step);

  // theirs: a tensor's name in transformers.
  const ExportType& of(const std::string& theirs) const;
  // The type of all tensors if they have one in common, else the default.
  const ExportType& common() const;

 private:
  const ExportType* default_;
  std::map<std::string, const ExportType*> types_;
};

// The values in that type. Throws InputError, naming the tensor, if the type has no number for one that is finite.
at::Tensor in_type(const at::Tensor& values, const ExportType& type, const std::string& name);

// Of the checkpoint `chosen`, or a newer one if that is removed meanwhile: its step and its weights, mapped.
std::pair<int64_t, NamedTensors> chosen_weights(const ExportOptions& options, const RunDirectory& run,
                                                const Config& config, int64_t chosen);

}  // namespace gyre
