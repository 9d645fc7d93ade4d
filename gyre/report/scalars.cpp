#include "gyre/report/scalars.h"

namespace gyre {

std::vector<Scalar> scalars_of(const MetricsLine& line) {
  std::vector<Scalar> scalars;
  for (const ScalarKind& kind : kScalarKinds) {
    if (!line.is(kind.event)) continue;
    if (kind.index[0] == '\0') {
      if (const auto value = line.real(kind.field)) scalars.push_back({&kind, 0, *value});
      continue;
    }
    int index = 0;
    for (const auto& value : line.reals(kind.field)) {
      if (value) scalars.push_back({&kind, index, *value});
      ++index;
    }
  }
  return scalars;
}

}  // namespace gyre
