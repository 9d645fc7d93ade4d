// The server over real connections: what it answers, what it refuses, and that slow, persistent or hostile clients keep
// nobody else from an answer.
#include "gyre/serve/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "gyre/core/error.h"

namespace gyre {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A connection, closed by the destructor.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(const std::string& text) const { ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  // All that comes until the server closes the connection; empty if it does not do so in time.
  std::optional<std::string> rest(std::chrono::milliseconds within = std::chrono::seconds(20)) const {
    std::string text;
    char piece[4096];
    const auto until = steady_clock::now() + within;
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
      pollfd waited{socket_, POLLIN, 0};
      if (left <= 0 || ::poll(&waited, 1, static_cast<int>(left)) <= 0) return std::nullopt;
      const ssize_t count = ::recv(socket_, piece, sizeof piece, 0);
      if (count <= 0) return text;
      text.append(piece, static_cast<size_t>(count));
    }
  }

 private:
  int socket_;
};

class Serving {
 public:
  explicit Serving(Answerer answerer = answer_text) : server_({"127.0.0.1", 0}, std::move(answerer)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { server_.serve(stop); });
  }
  static Answer answer_text(const std::string& name) {
    if (name == "/") return {std::make_shared<const std::string>("<p>page"), "text/html; charset=utf-8", ""};
    if (name == "/data") return {std::make_shared<const std::string>("{\"a\": 1}"), "application/json", "tag1"};
    if (name == "/bad") throw std::runtime_error("secret reason");
    return {};
  }
  int port() const { return server_.port(); }
  std::string token() const {
    const std::string url = server_.url();
    return url.substr(url.size() - 33, 32);
  }
  std::string path(const std::string& name) const { return "/" + token() + name; }
  std::string request(const std::string& method, const std::string& target, const std::string& headers = "") const {
    return method + " " + target + " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port()) + "\r\n" + headers + "\r\n";
  }
  // Sends `text` and returns the answer.
  std::string raw(const std::string& text) const {
    const Client client(port());
    client.send(text);
    return client.rest().value_or("no answer");
  }
  std::string get(const std::string& target, const std::string& headers = "") const {
    return raw(request("GET", target, headers));
  }
  void end() {
    thread_.request_stop();
    thread_.join();
  }

 private:
  HttpServer server_;
  std::jthread thread_;
};

TEST(HttpServer, AnswersThoseWhoKnowTheToken) {
  const Serving serving;
  const std::string page = serving.get(serving.path("/"));
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(page, HasSubstr("\r\n\r\n<p>page"));
  for (const char* header : {"Cache-Control: no-store\r\n", "Referrer-Policy: no-referrer\r\n",
                             "X-Content-Type-Options: nosniff\r\n", "Content-Security-Policy: default-src 'none'; ",
                             "frame-ancestors 'none'", "Content-Type: text/html; charset=utf-8\r\n"}) {
    EXPECT_THAT(page, HasSubstr(header));
  }
  const std::string data = serving.get(serving.path("/data"));
  EXPECT_THAT(data, HasSubstr("ETag: \"tag1\"\r\n"));
  EXPECT_THAT(data, HasSubstr("\r\n\r\n{\"a\": 1}"));
  const std::string head = serving.raw(serving.request("HEAD", serving.path("/data")));
  EXPECT_THAT(head, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  const std::string known = serving.get(serving.path("/data"), "If-None-Match: \"tag1\"\r\n");
  EXPECT_THAT(known, StartsWith("HTTP/1.1 304 "));
  EXPECT_TRUE(known.ends_with("\r\n\r\n")) << known;
  EXPECT_THAT(serving.get(serving.path("/data"), "If-None-Match: \"tag0\"\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(serving.get(serving.path("")), HasSubstr("Location: " + serving.path("/") + "\r\n"));
  EXPECT_THAT(serving.get(serving.path("/data"), "Range: bytes=2-3\r\nAccept-Encoding: gzip, br\r\n"),
              HasSubstr("\r\n\r\n{\"a\": 1}"));
}

TEST(HttpServer, RefusesAllOthersAndSaysNothing) {
  const Serving serving;
  const std::string port = std::to_string(serving.port());
  const std::string wrong(32, '0');
  for (const std::string& target : {std::string("/"), "/" + wrong + "/data", "/../" + serving.token() + "/data",
                                    "/%2e%2e" + serving.path("/data"), "/" + wrong + "/../" + serving.token() + "/data",
                                    "//" + serving.token() + "/data", std::string("/etc/passwd")}) {
    const std::string answer = serving.get(target);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 403 ")) << target;
    EXPECT_THAT(answer, Not(HasSubstr(serving.token()))) << target;
    EXPECT_THAT(answer, HasSubstr("Cache-Control: no-store")) << target;
  }
  for (const char* name :
       {"/../data", "/%2e%2e/data", "/data/", "//data", "/data/../data", "/%64ata", "/nothing", "/etc/passwd"}) {
    EXPECT_THAT(serving.get(serving.path(name)), StartsWith("HTTP/1.1 404 ")) << name;
  }
  const auto with_host = [&](const std::string& lines) {
    return serving.raw("GET " + serving.path("/data") + " HTTP/1.1\r\n" + lines + "\r\n");
  };
  EXPECT_THAT(with_host("Host: localhost:" + port + "\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(with_host("Host: evil.example:" + port + "\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(with_host(""), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(serving.get(serving.path("/data"), "Host: evil.example\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(serving.get(serving.path("/data"), "Origin: http://evil.example\r\n"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(serving.get(serving.path("/data"), "Origin: http://localhost:" + port + "\r\n"),
              StartsWith("HTTP/1.1 200 "));
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    const std::string answer =
        serving.raw(serving.request(method, serving.path("/data"), "Content-Length: 4\r\n") + "body");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n")) << method;
  }
  EXPECT_THAT(serving.get(serving.path("/bad")), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(serving.get(serving.path("/bad")), Not(HasSubstr("secret reason")));
}

TEST(HttpServer, LongOrBrokenRequestsEnd) {
  const Serving serving;
  EXPECT_THAT(serving.get(serving.path("/data"), "X: " + std::string(20'000, 'x') + "\r\n"),
              StartsWith("HTTP/1.1 431 "));
  std::string many;
  for (int i = 0; i < 3000; ++i) many += "X" + std::to_string(i) + ": y\r\n";
  EXPECT_THAT(serving.get(serving.path("/data"), many), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(serving.get("/" + std::string(100'000, 'a')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(serving.raw("nonsense\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(serving.raw(std::string("\0\xff\r\n\r\n", 6)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(serving.get(serving.path("/data"), "Content-Length: 99999999999999999999\r\n"), StartsWith("HTTP/1.1 "));
  // A request with a large body is answered, without waiting for the body.
  EXPECT_THAT(serving.raw(serving.request("POST", serving.path("/data"), "Content-Length: 1000000000\r\n")),
              StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(serving.get(serving.path("/data")), StartsWith("HTTP/1.1 200 ")) << "it goes on";
}

TEST(HttpServer, SlowClientsKeepNobodyWaiting) {
  const Serving serving;
  std::vector<std::unique_ptr<Client>> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(std::make_unique<Client>(serving.port()));
    slow.back()->send("GET " + serving.path("/data") + " HT");
  }
  const auto begin = steady_clock::now();
  EXPECT_THAT(serving.get(serving.path("/data")), StartsWith("HTTP/1.1 200 "));
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(5)) << "each of them may take ten";
}

TEST(HttpServer, EndsWhenAskedThoughClientsHangOn) {
  Serving serving;
  const Client silent(serving.port());
  silent.send("GET / HT");
  EXPECT_THAT(serving.get(serving.path("/data")), StartsWith("HTTP/1.1 200 "));
  const auto begin = steady_clock::now();
  serving.end();
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(HttpServer, AStopBeforeItBeganIsHeard) {
  HttpServer unheard({"127.0.0.1", 0}, Serving::answer_text);
  std::stop_source early;
  early.request_stop();
  unheard.serve(early.get_token());
  for (int i = 0; i < 20; ++i) {
    HttpServer server({"127.0.0.1", 0}, Serving::answer_text);
    std::stop_source source;
    std::jthread asks([&] { source.request_stop(); });
    server.serve(source.get_token());
  }
}

TEST(HttpServer, APortThatIsTakenIsRefused) {
  const Serving serving;
  const auto refusal = [](const ServerOptions& options) {
    try {
      const HttpServer server(options, Serving::answer_text);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({"127.0.0.1", serving.port()}),
            "port " + std::to_string(serving.port()) +
                " of 127.0.0.1 is taken; give another with --port, or --port 0 for any that is free");
  EXPECT_THAT(refusal({"192.0.2.1", 0}), HasSubstr("192.0.2.1 is no address of this machine"));
}

TEST(HttpServer, ManyAtOnceGetTheSame) {
  std::atomic<int> made = 0;
  const auto text = std::make_shared<const std::string>(3'000'000, 'x');
  const Serving serving([&](const std::string&) -> Answer {
    ++made;
    return {text, "text/plain", ""};
  });
  std::vector<std::jthread> clients;
  std::atomic<int> whole = 0;
  for (int i = 0; i < 24; ++i) {
    clients.emplace_back([&] {
      const std::string answer = serving.get(serving.path("/large"));
      if (answer.ends_with("\r\n\r\n" + *text)) ++whole;
    });
  }
  clients.clear();
  EXPECT_EQ(whole, 24);
  EXPECT_EQ(made, 24);
}

}  // namespace
}  // namespace gyre
