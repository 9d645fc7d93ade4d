// What the user is told of exceptions that are not gyre's own.
#include "gyre/core/explain.h"

#include <gtest/gtest.h>

#include <new>

namespace gyre {
namespace {

TEST(Explain, OnlyThoseWhoChooseSizesAreToldToMakeThemSmaller) {
  EXPECT_EQ(explain_exception(std::bad_alloc()),
            "out of memory; free some, or raise what this process may have (ulimit -v)");
  EXPECT_EQ(explain_exception(std::bad_alloc(), "make it smaller"), "out of memory; make it smaller");
}

}  // namespace
}  // namespace gyre
