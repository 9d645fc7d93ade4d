#include "gyre/serve/http_server.h"

#include <fmt/format.h>
#include <httplib.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "gyre/core/address.h"
#include "gyre/core/error.h"
#include "gyre/core/wake_flag.h"
#include "gyre/serve/connection.h"
#include "gyre/serve/gate.h"

namespace gyre {
namespace {

constexpr size_t kThreads = 16;
constexpr const char* kPlain = "text/plain; charset=utf-8";

std::vector<std::string> all_of(const httplib::Headers& headers, const char* name) {
  std::vector<std::string> values;
  const auto [begin, end] = headers.equal_range(name);
  for (auto header = begin; header != end; ++header) values.push_back(header->second);
  return values;
}

// The headers of all answers. The page's scripts and styles are inline. It may connect only to this server and may not
// be framed, and its address, which has the token, is not sent as a referrer.
httplib::Headers common_headers() {
  return {
      {"Cache-Control", "no-store"},
      {"Content-Security-Policy",
       "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cross-Origin-Resource-Policy", "same-origin"}};
}

}  // namespace

class HttpServer::Library : public httplib::Server {
 public:
  Library(const ServerOptions& options, Answerer answerer)
      : address_(options.address), token_(new_token()), answerer_(std::move(answerer)) {
    // With the library's default options a second server could use the same port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_default_headers(common_headers());
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      respond(request, response);
      return HandlerResponse::Handled;
    });
    new_task_queue = [this] {
      // The library calls this when it starts. It would ignore a stop before that.
      if (is_stopped_) httplib::Server::stop();
      return new httplib::ThreadPool(kThreads);  // the library deletes it
    };
    errno = 0;
    if (options.port == 0) {
      port_ = bind_to_any_port(address_);
    } else {
      port_ = bind_to_port(address_, options.port) ? options.port : -1;
    }
    if (port_ < 0) throw InputError(why_not(options.port));
    ::listen(svr_sock_, 128);  // the library's queue has five places; clients beyond that would wait for seconds
    gate_.emplace(address_, port_, token_);
  }

  int port() const { return port_; }
  std::string url() const {
    const bool is_any = address_ == "0.0.0.0" || address_ == "::";  // no address that clients can use
    return fmt::format("http://{}/{}/", host_and_port(is_any ? "127.0.0.1" : address_, port_), token_);
  }

  void serve(const std::stop_token& stop) {
    const std::stop_callback end(stop, [this] {
      is_stopped_ = true;
      stopping_.raise();
      httplib::Server::stop();
    });
    if (!listen_after_bind() && !is_stopped_) {
      throw RunError(fmt::format("the server at {} ended: {}", host_and_port(address_, port_), std::strerror(errno)));
    }
  }

 private:
  std::string why_not(int port) const {
    const int reason = errno;
    if (reason == EADDRINUSE) {
      return fmt::format("port {} of {} is taken; give another with --port, or --port 0 for any that is free", port,
                         address_);
    }
    if (reason == EADDRNOTAVAIL)
      return fmt::format("{} is no address of this machine; give one with --address", address_);
    return fmt::format("port {} of {} cannot be listened at: {}; give another with --port", port, address_,
                       std::strerror(reason));
  }

  void respond(const httplib::Request& request, httplib::Response& response) {
    const auto refusal = gate_->refuse(
        {request.method, all_of(request.headers, "Host"), all_of(request.headers, "Origin"), request.target});
    if (refusal) {
      response.status = refusal->status;
      if (refusal->status == 405) response.set_header("Allow", "GET, HEAD");
      response.set_content(refusal->why + "\n", kPlain);
      return;
    }
    const std::string name = Gate::name_in(request.target);
    if (name.empty()) {  // the page's relative URLs need the slash at the end
      response.set_redirect(fmt::format("/{}/", token_), 308);
      return;
    }
    Answer answer;
    try {
      answer = answerer_(name);
    } catch (const std::exception&) {
      response.status = 500;
      response.set_content("This could not be made\n", kPlain);
      return;
    }
    if (!answer.text) {
      response.status = 404;
      response.set_content("There is nothing of that name\n", kPlain);
      return;
    }
    const std::string tag = fmt::format("\"{}\"", answer.tag);
    if (!answer.tag.empty()) response.set_header("ETag", tag);
    if (!answer.tag.empty() && request.get_header_value("If-None-Match") == tag) {
      response.status = 304;
      return;
    }
    response.status = 200;
    // With a content provider the library neither copies nor compresses the text.
    response.set_content_provider(answer.text->size(), answer.type,
                                  [text = answer.text](size_t offset, size_t length, httplib::DataSink& sink) {
                                    return sink.write(text->data() + offset, length);
                                  });
  }

  // Answers with whole texts, never ranges. Newer versions of the library (Debian 13's) also take the client's address,
  // which is not used here.
  template <typename Server>
  static bool answer(Server& server, Connection& connection, bool& is_closed) {
    const auto whole = [](httplib::Request& request) { request.ranges.clear(); };
    if constexpr (requires { server.process_request(connection, true, is_closed, whole); }) {
      return server.process_request(connection, true, is_closed, whole);
    } else {
      return server.process_request(connection, "", 0, "", 0, true, is_closed, whole);
    }
  }

  // One request per connection.
  bool process_and_close_socket(socket_t socket) override {
    Connection connection(socket, stopping_.descriptor());
    const auto waiting = begin_waiting(socket);
    const bool has_head = connection.read_head();
    end_waiting(waiting);
    bool is_closed = true;
    bool answered = false;
    if (has_head) answered = answer(*this, connection, is_closed);
    // If a body stayed unread, the system would reset the connection and the answer could be lost.
    ::shutdown(socket, SHUT_WR);
    std::array<char, 4096> unwanted{};
    for (int i = 0; i < 16 && ::recv(socket, unwanted.data(), unwanted.size(), MSG_DONTWAIT) > 0; ++i) {
    }
    ::close(socket);
    --busy_;
    return answered;
  }

  // waiting_ has the connections whose request has not fully arrived, oldest first. If all threads are busy, the oldest
  // is closed, so that slow or hostile clients cannot block others.
  std::list<socket_t>::iterator begin_waiting(socket_t socket) {
    const std::lock_guard lock(mutex_);
    if (++busy_ >= kThreads && !waiting_.empty()) ::shutdown(waiting_.front(), SHUT_RDWR);
    return waiting_.insert(waiting_.end(), socket);
  }
  void end_waiting(std::list<socket_t>::iterator waiting) {
    const std::lock_guard lock(mutex_);
    waiting_.erase(waiting);
  }

  std::string address_;
  int port_ = -1;
  std::string token_;
  Answerer answerer_;
  std::optional<Gate> gate_;
  WakeFlag stopping_;
  std::atomic<bool> is_stopped_ = false;
  std::mutex mutex_;
  std::list<socket_t> waiting_;
  std::atomic<size_t> busy_ = 0;
};

HttpServer::HttpServer(const ServerOptions& options, Answerer answerer)
    : library_(std::make_unique<Library>(options, std::move(answerer))) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return library_->port();
}

std::string HttpServer::url() const {
  return library_->url();
}

void HttpServer::serve(const std::stop_token& stop) {
  library_->serve(stop);
}

}  // namespace gyre
