// Tests a connection's time limit for clients that take nothing (http_server_test.cpp has those that send nothing).
#include "gyre/serve/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>

namespace gyre {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class ConnectionTest : public ::testing::Test {
 protected:
  ConnectionTest() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()), 0);
    EXPECT_EQ(::pipe(stopping_.data()), 0);
  }
  ~ConnectionTest() override {
    for (const int descriptor : {ends_[0], ends_[1], stopping_[0], stopping_[1]}) ::close(descriptor);
  }
  ConnectionTest(const ConnectionTest&) = delete;
  ConnectionTest& operator=(const ConnectionTest&) = delete;

  // Writes until that fails; it does when the client's buffer is full.
  static void fill(Connection& connection) {
    const std::string piece(1 << 16, 'x');
    while (connection.write(piece.data(), piece.size()) > 0) {
    }
  }

  std::array<int, 2> ends_{}, stopping_{};
};

TEST_F(ConnectionTest, AClientThatStopsReadingIsGivenUp) {
  Connection connection(ends_[0], stopping_[0], milliseconds(50));
  const auto begin = steady_clock::now();
  fill(connection);
  EXPECT_GE(steady_clock::now() - begin, milliseconds(50));
  std::array<char, 1 << 16> piece{};
  while (::recv(ends_[1], piece.data(), piece.size(), MSG_DONTWAIT) > 0) {
  }
  EXPECT_EQ(connection.write("y", 1), 1) << "it reads again";
}

TEST_F(ConnectionTest, AServerThatStopsWaitsForNoClient) {
  Connection connection(ends_[0], stopping_[0]);
  ASSERT_EQ(::write(stopping_[1], "s", 1), 1);
  const auto begin = steady_clock::now();
  fill(connection);
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace gyre
