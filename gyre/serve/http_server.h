// An HTTP server for whoever sits at this machine: texts under names, to those who know its token.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace gyre {

struct ServerOptions {
  std::string address = "127.0.0.1";  // in numbers
  int port = 0;                       // 0: any that is free
};

// What is answered under a name.
struct Answer {
  std::shared_ptr<const std::string> text;  // null: nothing has that name
  std::string type;
  std::string tag;  // of the text: who has it already is told so instead. Empty: no tag
};
// `name` begins with a slash. Any thread. What it throws is an answer with status 500 and no reason.
using Answerer = std::function<Answer(const std::string& name)>;

class HttpServer {
 public:
  // Binds. InputError where the port is taken, or the address is none of this machine.
  HttpServer(const ServerOptions& options, Answerer answerer);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;
  // The address to ask, with its token.
  std::string url() const;
  // Answers until it is asked to stop; requests that are under way then are dropped. Once.
  void serve(const std::stop_token& stop);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace gyre
