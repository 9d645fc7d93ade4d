// What a pipeline and a segment must be like. Callers of the library build them by hand, and a mistake there must not
// become a crash or a wrong model.
#pragma once

#include <vector>

#include "gyre/model/layer.h"
#include "gyre/runtime/pipeline.h"
#include "gyre/runtime/segment.h"

namespace gyre {

// Each throws InputError that says what is wrong.

// The stages' ranges must cover all layers, each layer once and in order.
void check_ranges(const Schedule& schedule, const Layers& layers, const std::vector<LayerRange>& ranges);
// trains: there is an optimizer.
void check_options(const RuntimeOptions& options, const Schedule& schedule, bool trains);
// Weights and optimizers' states are saved by name: no two parameters may have one name, nor may it have a separator of
// the states' names. Matrices that are stacked in a parameter must be all of it. Only the last layer may read a weight
// of another one.
void check_parameters(const Layers& layers);
// The segment's schedule must be placed as the pipeline's is. It trains in whole windows, with an optimizer.
void check_segment(const Pipeline& pipeline, const Segment& segment);

}  // namespace gyre
