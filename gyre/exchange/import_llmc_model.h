// gyre import of a model file of llm.c.
#pragma once

#include "gyre/exchange/import_model.h"

namespace gyre {

// As import_model(), which calls it.
ImportResult import_llmc_model(const ImportOptions& options);

}  // namespace gyre
