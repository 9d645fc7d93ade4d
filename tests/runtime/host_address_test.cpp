// What --interface may say.
#include "gyre/runtime/ranks/host_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gyre/core/error.h"

namespace gyre {
namespace {

TEST(HostAddress, IsThatOfAnInterfaceOrGiven) {
  EXPECT_EQ(address_of(""), "127.0.0.1");
  EXPECT_EQ(address_of("lo"), "127.0.0.1");
  EXPECT_EQ(address_of("127.0.0.1"), "127.0.0.1");
}

// Otherwise the connections would fail later, as those that a firewall blocks.
TEST(HostAddress, MustBeOfThisHost) {
  for (const char* const other : {"no-such-interface", "192.0.2.1", "256.1.1.1"}) {  // 192.0.2.0/24 is nobody's
    EXPECT_THAT([&] { address_of(other); },
                ::testing::ThrowsMessage<InputError>(
                    ::testing::HasSubstr(std::string(other) + ": neither an interface nor an address of this host")));
  }
}

}  // namespace
}  // namespace gyre
