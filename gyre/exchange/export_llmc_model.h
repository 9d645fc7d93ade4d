// gyre export --format llm.c: a model file of llm.c.
#pragma once

#include "gyre/config/config.h"
#include "gyre/exchange/export_model.h"
#include "gyre/train/run_directory.h"

namespace gyre {

// As export_model(), which calls it.
ExportResult export_llmc_model(const ExportOptions& options, const RunDirectory& run, const Config& config);

}  // namespace gyre
