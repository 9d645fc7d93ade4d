// Which texts are addresses, and which of these stay on this host.
#include "gyre/core/address.h"

#include <gtest/gtest.h>

namespace gyre {
namespace {

TEST(Address, IsNumeric) {
  for (const char* text : {"127.0.0.1", "::1", "0.0.0.0", "fe80::1"}) EXPECT_TRUE(is_address(text)) << text;
  for (const char* text : {"", "localhost", "127.1", "1.2.3.4.5", "[::1]", "127.0.0.1:80"}) {
    EXPECT_FALSE(is_address(text)) << text;
  }
}

TEST(Address, LoopbackStaysOnThisHost) {
  for (const char* text : {"127.0.0.1", "127.0.0.2", "::1", "localhost"}) EXPECT_TRUE(is_loopback(text)) << text;
  for (const char* text : {"", "0.0.0.0", "127.evil.example", "127.", "10.0.0.1", "fe80::1"}) {
    EXPECT_FALSE(is_loopback(text)) << text;
  }
}

TEST(Address, IsWrittenWithItsPortAsInUrls) {
  EXPECT_EQ(host_and_port("::1", 8), "[::1]:8");
  EXPECT_EQ(host_and_port("fe80::1%eth0", 8), "[fe80::1%eth0]:8");
  EXPECT_EQ(host_and_port("127.0.0.1", 8), "127.0.0.1:8");
  EXPECT_EQ(host_and_port("node-1", 8), "node-1:8");
}

}  // namespace
}  // namespace gyre
