// How the layers of a stage are grouped under recompute. A microbatch in flight keeps the inputs of groups alone. Its
// backward goes through the groups, last one first, and repeats the forward of each before it goes through its layers
// (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gyre/schedule/layer_range.h"
#include "gyre/schedule/schedule.h"

namespace gyre {

// Of one layer and one microbatch, in bytes.
struct LayerKeeps {
  int64_t input = 0;
  int64_t all = 0;  // what a forward saves for the backward, the input included if that needs it
};

// What a schedule makes of a stage, over all its pipelines.
struct HeldMicrobatches {
  int64_t most = 1;     // at once between forward and backward
  bool splits = false;  // whether halves of backwards come apart. Between them a stage holds what all its layers saved
  // Whether the forward of that one of `groups` groups is repeated. If a stage has one microbatch in flight, its
  // backward follows its forward at once, so what the last group has saved stays.
  bool repeats(size_t group, size_t groups) const { return most > 1 || group + 1 < groups; }
};
// [stage]. Walks every program once.
std::vector<HeldMicrobatches> held_microbatches(const Schedule& schedule);

// The groups with which a stage needs least memory at once: the inputs of all groups of the other microbatches in
// flight and, of the one whose backward runs, the inputs of the groups before one and all that this one saves. More
// groups mean more inputs and smaller groups. Of divisions that need as much, it is the one with the fewest groups;
// where backwards are split, all layers are one group. That holds where all layers but the model's first read tensors
// of one size, as in every kind of model here; for others it is a division that needs no more than one group. Ranges
// count from the stage's first layer. The stage must have a layer.
std::vector<LayerRange> recompute_groups(std::span<const LayerKeeps> layers, const HeldMicrobatches& held);

}  // namespace gyre
