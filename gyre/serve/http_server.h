// An HTTP server for the users of this machine: it serves texts by name to clients that know its token.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace gyre {

struct ServerOptions {
  std::string address = "127.0.0.1";  // numeric
  int port = 0;                       // 0: any free port
};

// The answer to a request for a name.
struct Answer {
  std::shared_ptr<const std::string> text;  // null: nothing has that name
  std::string type;
  std::string tag;  // ETag of the text: a client that has this one gets status 304. Empty: no tag
};
// Called from any thread; `name` begins with a slash. If it throws, the answer is status 500 without a reason.
using Answerer = std::function<Answer(const std::string& name)>;

class HttpServer {
 public:
  // Binds the port. Throws InputError if the port cannot be used, or the address is not one of this machine.
  HttpServer(const ServerOptions& options, Answerer answerer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // The URL for clients, with the token.
  std::string url() const;
  // Answers until it is asked to stop, then drops requests in progress. Call once. Throws RunError if the server ends
  // without being asked to.
  void serve(const std::stop_token& stop);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace gyre
