// What a pipeline and a segment must be like. Callers of the library build them by hand, and a mistake there must not
// become a crash or a wrong model.
#pragma once

#include <vector>

#include "gyre/model/layer.h"
#include "gyre/model/stage.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/segment.h"

namespace gyre {

// Each throws InputError that says what is wrong.

// The stages' ranges must cover all layers, each layer once and in order.
void check_ranges(const Schedule& schedule, const Layers& layers, const std::vector<LayerRange>& ranges);
// trains: there is an optimizer.
void check_options(const RuntimeOptions& options, const Schedule& schedule, bool trains);
// No two parameters of the model may have one name: weights are saved by name.
void check_names(const std::vector<Stage>& stages);
// The segment's schedule must be placed as the pipeline's is. It trains in whole windows, with an optimizer.
void check_segment(const Pipeline& pipeline, const Segment& segment);

}  // namespace gyre
