// What the norm by which gradients are clipped is taken over, and so which updates wait for each other.
#pragma once

#include <string>
#include <vector>

#include "gyre/schedule/schedule.h"

namespace gyre {

//   Global  the gradient of the whole model: all updates of a window wait until the last of its gradients is complete
//   Stage   the gradient of each stage
//   None    nothing is clipped
//   Auto    Global if the schedule allows it, otherwise Stage
enum class ClipScope { Auto, Global, Stage, None };
// The names, in lower case.
std::vector<std::string> clip_scopes();
// Throws InputError, which begins with `where`, for a name of none.
ClipScope parse_clip_scope(const std::string& name, const std::string& where);

// Sets Schedule::global_norm.
void set_clip_scope(Schedule& schedule, ClipScope scope);

// Throws InputError if the schedule has a global norm and does not allow it: if it has no flush, so that updates would
// wait for microbatches that wait for updates, or if one of its workers would wait for itself (early_change()).
// by_flag: the scope was given as --clip-scope.
void check_clipping(const Schedule& schedule, bool by_flag = false);

}  // namespace gyre
