// Which requests are answered: by token, by host and origin, by method.
#include "gyre/serve/gate.h"

#include <gtest/gtest.h>

#include <set>

namespace gyre {
namespace {

const std::string kToken = "0123456789abcdef0123456789abcdef";

Request good() {
  return {"GET", {"127.0.0.1:8642"}, {}, "/" + kToken + "/data"};
}
int status(const Request& request, const std::string& address = "127.0.0.1", int port = 8642) {
  const auto refusal = Gate(address, port, kToken).refuse(request);
  return refusal ? refusal->status : 200;
}
int with_host(const std::string& host, const std::string& address = "127.0.0.1", int port = 8642) {
  Request request = good();
  request.hosts = {host};
  return status(request, address, port);
}
int with_target(const std::string& target) {
  Request request = good();
  request.target = target;
  return status(request);
}

TEST(Gate, OnlyThisMachinesNamesAreHosts) {
  for (const char* host : {"127.0.0.1:8642", "localhost:8642", "LocalHost:8642", "[::1]:8642"}) {
    EXPECT_EQ(with_host(host), 200) << host;
  }
  for (const char* host :
       {"evil.example:8642", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:18642", "localhost:8642.evil.example",
        "localhost.evil.example:8642", "127.0.0.1.evil.example:8642", "", ":8642", "[::1]", "10.0.0.5:8642", "::1:8642",
        "127.0.0.1:8642 ", "user@localhost:8642"}) {
    EXPECT_EQ(with_host(host), 403) << host;
  }
  EXPECT_EQ(with_host("localhost", "127.0.0.1", 80), 200) << "a browser leaves 80 out";
  Request request = good();
  request.hosts = {};
  EXPECT_EQ(status(request), 403);
  request.hosts = {"127.0.0.1:8642", "127.0.0.1:8642"};
  EXPECT_EQ(status(request), 403);
}

TEST(Gate, BeyondLoopbackAddressesCountAndNamesDoNot) {
  for (const char* host : {"10.0.0.5:8642", "[fe80::1]:8642", "localhost:8642"}) {
    EXPECT_EQ(with_host(host, "0.0.0.0"), 200) << host;
  }
  for (const char* host : {"evil.example:8642", "[evil]:8642", "10.0.0.5.evil.example:8642", "fe80::1:8642"}) {
    EXPECT_EQ(with_host(host, "0.0.0.0"), 403) << host;
  }
  EXPECT_EQ(with_host("10.0.0.5:8642", "127.0.0.2"), 403);
}

TEST(Gate, PagesOfOtherSitesAreRefused) {
  Request request = good();
  request.origins = {"http://127.0.0.1:8642"};
  EXPECT_EQ(status(request), 200);
  for (const char* origin :
       {"http://evil.example", "http://evil.example:8642", "https://127.0.0.1:8642", "null", "", "127.0.0.1:8642"}) {
    request.origins = {origin};
    EXPECT_EQ(status(request), 403) << origin;
  }
  request.origins = {"http://127.0.0.1:8642", "http://evil.example"};
  EXPECT_EQ(status(request), 403);
}

TEST(Gate, TheTokenIsTheWholeFirstPart) {
  for (const std::string& target :
       {"/" + kToken, "/" + kToken + "/", "/" + kToken + "/data?x", "/" + kToken + "?x=/y"}) {
    EXPECT_EQ(with_target(target), 200) << target;
  }
  std::string other = kToken;
  other.back() = '0';
  for (const std::string& target :
       {std::string(), std::string("/"), std::string("/data"), kToken, "//" + kToken + "/", "/" + other + "/",
        "/" + kToken + "0/", "/" + kToken.substr(0, 31) + "/", "/x/../" + kToken + "/", "/%30" + kToken.substr(1) + "/",
        "/?" + kToken, "/data?" + kToken, "/" + kToken + std::string(1, '\0') + "/"}) {
    EXPECT_EQ(with_target(target), 403) << target;
  }
}

TEST(Gate, OnlyGetAndHead) {
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "CONNECT", "get", ""}) {
    Request request = good();
    request.method = method;
    EXPECT_EQ(status(request), 405) << method;
  }
  Request request = good();
  request.method = "HEAD";
  EXPECT_EQ(status(request), 200);
}

TEST(Gate, NamesAreWhatFollowsTheToken) {
  EXPECT_EQ(Gate::name_in("/" + kToken), "");
  EXPECT_EQ(Gate::name_in("/" + kToken + "?a/b"), "");
  EXPECT_EQ(Gate::name_in("/" + kToken + "/"), "/");
  EXPECT_EQ(Gate::name_in("/" + kToken + "/data?v=/1"), "/data");
  EXPECT_EQ(Gate::name_in("/" + kToken + "/../data"), "/../data");
}

TEST(Gate, TokensAreNew) {
  std::set<std::string> tokens;
  for (int i = 0; i < 100; ++i) tokens.insert(new_token());
  EXPECT_EQ(tokens.size(), 100u);
  EXPECT_EQ(tokens.begin()->size(), 32u);
  EXPECT_EQ(tokens.begin()->find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace gyre
