#include "gyre/runtime/ranks/ranks.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gyre/core/error.h"
#include "gyre/runtime/ranks/interface.h"
#include "gyre/runtime/ranks/mailboxes.h"

namespace gyre {
namespace {

constexpr std::chrono::seconds kHearing{5};  // a verdict that is there
constexpr int kFirstQuestions = 8;           // for rank 0's time, before anything runs
// Under which rank 0 says how it goes on: the facts of all, or the exit code of a run that does not begin.
constexpr const char* kVerdict = "the verdict of rank 0";

// Under which a rank says who it is.
std::string hello_of(int rank) {
  return fmt::format("rank {}", rank);
}

// That it knows the verdict, and needs nothing more of rank 0.
std::string has_heard(int rank) {
  return fmt::format("rank {} has heard", rank);
}

// By what it says of itself.
std::string told_name(int rank, const nlohmann::json& hello) {
  return fmt::format("rank {} (process {} on {})", rank, hello.value("process", 0), hello.value("host", ""));
}

nlohmann::json own_hello() {
  return {{"host", host_name()}, {"process", ::getpid()}};
}

nlohmann::json to_json(const RankFacts& facts) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [what, value] : facts) json[what] = value;
  return json;
}

// The first of the facts that a rank has otherwise than rank 0; nothing where all are alike.
std::optional<std::string> difference(const RankFacts& facts, const nlohmann::json& theirs,
                                      const nlohmann::json& rank_0s) {
  const auto shown = [](const std::string& value) { return value.empty() ? "none" : value; };
  for (const auto& [what, any] : facts) {
    const std::string one = theirs.value(what, ""), other = rank_0s.value(what, "");
    if (one != other) return fmt::format("its {} is not that of rank 0 ({}, and {})", what, shown(one), shown(other));
  }
  return std::nullopt;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "an unknown host";
}

Message wait_for(Ranks& ranks, Receiver& link, Doorbell& bell, const std::stop_token& stop) {
  const Ranks::Watch watch(ranks, bell, {});
  const std::stop_callback wake(stop, [&bell] { bell.ring(); });
  for (;;) {
    const uint64_t ticket = bell.ticket();
    if (auto message = link.try_receive()) return std::move(*message);
    if (const auto failure = ranks.failure()) throw RunError(*failure);
    if (stop.stop_requested()) throw RunError("the process ends");
    bell.wait(ticket);
  }
}

at::Tensor to_tensor(const std::string& text) {
  at::Tensor bytes = at::empty({static_cast<int64_t>(text.size())}, at::kByte);
  if (!text.empty()) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  return bytes;
}

std::string to_text(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(bytes.numel())};
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Ranks::Ranks(int rank, int world, std::string job, std::unique_ptr<Rendezvous> rendezvous,
             std::chrono::seconds meet_within, double (*clock)())
    : rank_(rank),
      job_(std::move(job)),
      rendezvous_(std::move(rendezvous)),
      clock_(clock),
      meet_within_(meet_within),
      others_(static_cast<size_t>(world)) {}

Ranks::~Ranks() {
  for (int number = 0; number < world(); ++number) {
    Peer* const peer = others_[static_cast<size_t>(number)].peer.get();
    if (peer == nullptr) continue;
    answers(number) ? peer->close() : peer->give_up();
  }
  for (Other& other : others_) {
    if (other.peer) other.peer->join();
  }
}

// Whether a goodbye to that process will be answered. After a failure others than rank 0, which decides, may wait for
// each other for ever.
bool Ranks::answers(int number) const {
  const std::lock_guard lock(mutex_);
  return !others_[static_cast<size_t>(number)].lost && (!failure_ || rank_ == 0 || number == 0);
}

// A process that comes as a rank that is there already, as those of another run at the same port do, changes nothing.
void Ranks::leave_hello(nlohmann::json hello) {
  if (std::exchange(said_hello_, true)) return;
  is_double_ = !rendezvous_->leave_first(hello_of(rank_), hello.dump());
  if (!is_double_) return;
  throw InputError(
      fmt::format("another process has come as rank {} before this one; is another run at the same address and port? "
                  "Give each its own MASTER_PORT, and --job NAME, so that they know each other apart",
                  rank_));
}

void Ranks::refuse(const std::string& why, int exit_code) {
  if (met_ || is_double_) return;
  nlohmann::json hello = own_hello();
  hello["error"] = why;
  leave_hello(std::move(hello));
  if (rank_ != 0) {
    rendezvous_->leave(has_heard(rank_), "");
    return;
  }
  rendezvous_->leave(kVerdict, nlohmann::json{{"exit", exit_code}}.dump());
  // The place where notes are may go with this process: those who are there hear of it first.
  for (int other = 1; other < world(); ++other) {
    try {
      if (rendezvous_->has(hello_of(other))) rendezvous_->find(has_heard(other), kHearing);
    } catch (const InputError&) {  // it has gone
    }
  }
}

void Ranks::meet(const RankFacts& given, std::set<std::pair<int, int>> pairs, double silence_seconds,
                 std::unique_ptr<DeviceChannels> channels) {
  RankFacts facts = {{"job", job_}, {"number of ranks", std::to_string(world())}};
  facts.insert(facts.end(), given.begin(), given.end());
  facts.emplace_back("way from device to device", channels ? "direct" : "through the host");
  channels_ = std::move(channels);
  silence_seconds_ = silence_seconds;
  nlohmann::json hello = own_hello();
  hello["address"] = rendezvous_->address();
  hello["facts"] = to_json(facts);
  leave_hello(std::move(hello));
  if (rank_ == 0) {
    compare(facts);
    rendezvous_->leave(kVerdict, nlohmann::json{{"facts", to_json(facts)}}.dump());
  } else {
    compare_with_rank_0(facts);
  }
  met_ = true;
  for (int other = 1; other < world(); ++other) pairs.insert({0, other});
  connect(pairs);
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
  if (rank_ != 0) learn_clock();
}

// On rank 0: everybody is there, and is about to run the same.
void Ranks::compare(const RankFacts& facts) {
  const auto until = Clock::now() + meet_within_;
  std::string connections = fmt::format("rank 0 at {}", rendezvous_->address());
  bool is_open = !is_loopback(rendezvous_->address());
  for (int other = 1; other < world(); ++other) {
    const auto left = std::chrono::ceil<std::chrono::seconds>(until - Clock::now());
    const auto hello =
        nlohmann::json::parse(rendezvous_->find(hello_of(other), std::max(left, std::chrono::seconds(1))));
    const std::string name = told_name(other, hello);
    if (hello.contains("error")) throw InputError(fmt::format("{}: {}", name, hello["error"].get<std::string>()));
    if (const auto what = difference(facts, hello["facts"], to_json(facts))) {
      throw InputError(fmt::format("{}: {}; start all ranks with the same", name, *what));
    }
    const std::string address = hello["address"];
    if (hello["host"] != host_name() && (is_loopback(address) || is_loopback(rendezvous_->address()))) {
      throw InputError(fmt::format(
          "{}: it cannot be reached from {} over {}; give all ranks --interface, with an interface of their "
          "host or its address",
          name, host_name(), is_loopback(address) ? address : rendezvous_->address()));
    }
    connections += fmt::format(", rank {} at {}", other, address);
    is_open = is_open || !is_loopback(address);
  }
  const std::string& store = rendezvous_->listens_at();
  if (!store.empty()) network_ = fmt::format("ranks meet at {} (open on all addresses of that host)", store);
  if (is_open) network_ += fmt::format("{}connections: {}", store.empty() ? "" : "; ", connections);
}

// What rank 0 has told may have been for others: those of another run that met here earlier.
void Ranks::compare_with_rank_0(const RankFacts& facts) {
  const auto verdict = nlohmann::json::parse(rendezvous_->find(kVerdict, 2 * meet_within_));
  if (!verdict.contains("facts")) {
    rendezvous_->leave(has_heard(rank_), "");
    throw ToldElsewhere(verdict.at("exit"));
  }
  if (const auto what = difference(facts, to_json(facts), verdict["facts"])) {
    throw InputError(
        fmt::format("{}: {}; another run is at the same address and port", told_name(rank_, own_hello()), *what));
  }
}

// Everybody goes through the pairs in the same order, so that nobody waits in a circle.
void Ranks::connect(const std::set<std::pair<int, int>>& pairs) {
  for (const auto& [first, second] : pairs) {
    if (first != rank_ && second != rank_) continue;
    const int number = first == rank_ ? second : first;
    Other& other = others_[static_cast<size_t>(number)];
    const auto hello = nlohmann::json::parse(rendezvous_->find(hello_of(number), meet_within_));
    auto wire = rendezvous_->connect(fmt::format("link/{}-{}", first, second), first == rank_);
    {
      const std::lock_guard lock(mutex_);  // who is connected already may speak of this one
      other.name = told_name(number, hello);
      other.heard = Clock::now();
    }
    if (channels_) open_channels(number);
    other.peer = std::make_unique<Peer>(
        std::move(wire),
        Peer::Callbacks{[this, number](Envelope envelope) { deliver(number, std::move(envelope)); },
                        [this, number](const std::string& why) { lose(number, fmt::format("is gone: {}", why)); }});
    other.peer->start();
  }
}

// One for each direction; both processes open that of the lower rank first.
void Ranks::open_channels(int number) {
  Other& other = others_[static_cast<size_t>(number)];
  const auto [low, high] = std::minmax(rank_, number);
  for (const auto& [from, to] : {std::pair(low, high), std::pair(high, low)}) {
    const bool sends = from == rank_;
    const std::string key = fmt::format("channel/{}-{}", from, to);
    if (sends) rendezvous_->leave(key, channels_->new_id());
    (sends ? other.out : other.in) = channels_->open(rendezvous_->find(key, meet_within_), sends);
  }
}

bool Ranks::goes_by_channel(const Other& other, const Envelope& envelope) const {
  const auto& tensors = envelope.message.tensors;
  if (!other.out || envelope.kind != Envelope::Kind::Message || tensors.empty()) return false;
  return std::all_of(tensors.begin(), tensors.end(),
                     [this](const at::Tensor& tensor) { return tensor.device() == channels_->device(); });
}

void Ranks::send(int to, Envelope envelope) {
  Other& other = others_[static_cast<size_t>(to)];
  if (!goes_by_channel(other, envelope)) {
    other.peer->send(std::move(envelope));
    return;
  }
  Envelope announced = envelope;
  announced.message.lease.reset();
  announced.message.ready = {};
  for (at::Tensor& tensor : announced.message.tensors) {
    tensor = at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()).device(at::kMeta));
  }
  const std::lock_guard lock(other.order);
  other.peer->send(std::move(announced));
  other.out->send(std::move(envelope.message));
}

// Of a message that was announced: in the order of announcements, whether anybody wants it still or not.
void Ranks::take_contents(Other& from, Message& message) {
  if (!from.in) throw RunError("tensors were announced that no channel brings; is every process of the same build?");
  Message contents = from.in->receive(message.tensors);
  message.tensors = std::move(contents.tensors);
  message.ready = std::move(contents.ready);
}

void Ranks::deliver(int from, Envelope envelope) {
  {
    const std::lock_guard lock(mutex_);
    others_[static_cast<size_t>(from)].heard = Clock::now();
  }
  Message& message = envelope.message;
  switch (envelope.kind) {
    case Envelope::Kind::Message:
      if (!message.tensors.empty() && message.tensors[0].is_meta()) {
        take_contents(others_[static_cast<size_t>(from)], message);
      }
      if (const auto to = box(inboxes_, {envelope.segment, envelope.link})) to->put(std::move(message));
      break;
    case Envelope::Kind::Credit:
      if (const auto to = box(outboxes_, {envelope.segment, envelope.link})) to->add_room(message.number);
      break;
    case Envelope::Kind::Beat: {
      const std::lock_guard lock(mutex_);
      RankStatus& status = others_[static_cast<size_t>(from)].status;
      status = {static_cast<uint64_t>(message.values.at(0)), message.values.at(1) != 0, message.values.at(2) != 0,
                to_text(message.tensors.at(0))};
      if (status.stop) {
        for (Doorbell* bell : bells_) bell->ring();
      }
      break;
    }
    case Envelope::Kind::Clock:
      answer_time(from, std::move(message));
      break;
    case Envelope::Kind::Note: {
      const std::lock_guard lock(mutex_);
      notes_.push_back(fmt::format("{}: {}", others_[static_cast<size_t>(from)].name, to_text(message.tensors.at(0))));
      for (Doorbell* bell : bells_) bell->ring();
      break;
    }
    case Envelope::Kind::Failure: {
      if (from == 0) {
        const std::lock_guard lock(mutex_);
        exit_code_ = static_cast<int>(message.values.at(1));
      }
      fail(static_cast<int>(message.values.at(0)), to_text(message.tensors.at(0)));
      break;
    }
    case Envelope::Kind::Goodbye: {
      const std::lock_guard lock(mutex_);
      others_[static_cast<size_t>(from)].left = true;
      for (Doorbell* bell : bells_) bell->ring();
      break;
    }
  }
}

// `rank` cannot go on, or cannot be reached.
void Ranks::fail(int rank, const std::string& why) {
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    Other& other = others_[static_cast<size_t>(rank)];
    is_first = !failure_;
    if (is_first) {
      const std::string name = other.name.empty() ? fmt::format("rank {}", rank) : other.name;
      const std::string at =
          other.status.workers.empty() ? "" : fmt::format("; it was last at: {}", other.status.workers);
      failure_ = {rank, fmt::format("{} {}{}", name, why, at)};
    }
    for (Doorbell* bell : bells_) bell->ring();
  }
  // Rank 0 may see this process end before it sees that one.
  if (is_first && rank_ != 0 && rank != 0) report(0, rank, why);
}

void Ranks::lose(int rank, const std::string& why) {
  Other& other = others_[static_cast<size_t>(rank)];
  {
    const std::lock_guard lock(mutex_);
    other.lost = true;
    if (rank == 0 && !failure_) rank_0_tells_ = false;
  }
  for (DeviceChannel* channel : {other.out.get(), other.in.get()}) {
    if (channel != nullptr) channel->abort();
  }
  fail(rank, why);
}

void Ranks::report(int to, int about, const std::string& why, int exit_code) {
  Envelope failure{Envelope::Kind::Failure, 0, {}, {}};
  failure.message.values = {static_cast<double>(about), static_cast<double>(exit_code)};
  failure.message.tensors = {to_tensor(why)};
  send(to, std::move(failure));
}

void Ranks::report_failure(const std::string& why) {
  report(0, rank_, fmt::format("cannot go on: {}", why));
}

void Ranks::fail_all(int exit_code) {
  for (int other = 1; other < world(); ++other) report(other, 0, "has ended the run", exit_code);
}

std::string Ranks::name_of(int rank) const {
  const std::lock_guard lock(mutex_);
  return others_[static_cast<size_t>(rank)].name;
}

int Ranks::exit_code() const {
  const std::lock_guard lock(mutex_);
  return exit_code_;
}

std::optional<std::string> Ranks::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_ ? std::optional(failure_->second) : std::nullopt;
}

bool Ranks::nobody_tells() const {
  const std::lock_guard lock(mutex_);
  return !rank_0_tells_;
}

std::vector<RankStatus> Ranks::others() const {
  const std::lock_guard lock(mutex_);
  std::vector<RankStatus> statuses;
  for (size_t other = 0; other < others_.size(); ++other) {
    if (static_cast<int>(other) != rank_) statuses.push_back(others_[other].status);
  }
  return statuses;
}

bool Ranks::others_asked_to_stop() const {
  const std::lock_guard lock(mutex_);
  return std::any_of(others_.begin(), others_.end(), [](const Other& other) { return other.status.stop; });
}

ClockOffset Ranks::clock_of_rank_0() const {
  const std::lock_guard lock(mutex_);
  return clock_of_rank_0_;
}

// One question after the other, so that none waits behind another.
void Ranks::learn_clock() {
  Doorbell bell;
  const Watch watch(*this, bell, {});
  const auto nobody_answers = [this] {
    const std::lock_guard lock(mutex_);
    return failure_ || others_[0].left;
  };
  for (int question = 0; question < kFirstQuestions; ++question) {
    const uint64_t ticket = bell.ticket();
    if (nobody_answers()) return;
    ask_for_time();
    bell.wait(ticket);
  }
}

void Ranks::ask_for_time() {
  Envelope question{Envelope::Kind::Clock, 0, {}, {}};
  question.message.values = {clock_()};
  send(0, std::move(question));
}

// On rank 0 a question, elsewhere what was answered.
void Ranks::answer_time(int from, Message message) {
  const double now = clock_();
  if (rank_ == 0) {
    message.values.push_back(now);
    send(from, {Envelope::Kind::Clock, 0, {}, std::move(message)});
    return;
  }
  const std::lock_guard lock(mutex_);
  clock_of_rank_0_.add(message.values.at(0), message.values.at(1), now);
  for (Doorbell* bell : bells_) bell->ring();
}

void Ranks::note(const std::string& line) {
  Envelope note{Envelope::Kind::Note, 0, {}, {}};
  note.message.tensors = {to_tensor(line)};
  send(0, std::move(note));
}

std::vector<std::string> Ranks::take_notes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

Ranks::Watch::Watch(Ranks& ranks, Doorbell& bell, std::function<RankStatus()> status)
    : ranks_(ranks), bell_(bell), tells_(status != nullptr) {
  const std::lock_guard lock(ranks_.mutex_);
  ranks_.bells_.insert(&bell_);
  if (tells_) ranks_.status_ = std::move(status);
}

Ranks::Watch::~Watch() {
  const std::lock_guard lock(ranks_.mutex_);
  ranks_.bells_.erase(&bell_);
  if (tells_) ranks_.status_ = nullptr;
}

// The thread that tells the others that this process lives, and looks whether they do.
void Ranks::watch(const std::stop_token& stop) {
  const auto interval = std::chrono::duration<double>(std::clamp(silence_seconds_ / 8, 0.02, 1.0));
  auto last = Clock::now();
  while (!stop.stop_requested()) {
    const auto now = Clock::now();
    const std::chrono::duration<double> away = now - last;
    last = now;
    // Time in which this process did not look says nothing of the others: it was stopped itself.
    if (away.count() > silence_seconds_ / 2) {
      const std::lock_guard lock(mutex_);
      for (Other& other : others_) other.heard = now;
    }
    send_beats();
    if (rank_ != 0) ask_for_time();
    find_silence();
    std::unique_lock lock(sleep_mutex_);
    sleep_.wait_for(lock, stop, interval, [] { return false; });
  }
}

void Ranks::send_beats() {
  Envelope beat{Envelope::Kind::Beat, 0, {}, {}};
  RankStatus status;
  {
    const std::lock_guard lock(mutex_);
    if (status_) status = status_();
  }
  beat.message.values = {static_cast<double>(status.steps), status.computing ? 1.0 : 0.0, status.stop ? 1.0 : 0.0};
  beat.message.tensors = {to_tensor(status.workers)};
  for (int other = 0; other < world(); ++other) {
    if (other != rank_ && (rank_ == 0 || other == 0)) send(other, beat);
  }
}

void Ranks::find_silence() {
  const auto now = Clock::now();
  for (int number = 0; number < world(); ++number) {
    if (number == rank_ || (rank_ != 0 && number != 0)) continue;
    Other& other = others_[static_cast<size_t>(number)];
    std::chrono::duration<double> silent{0};
    {
      const std::lock_guard lock(mutex_);
      if (!other.lost) silent = now - other.heard;
    }
    if (silent.count() < silence_seconds_) continue;
    lose(number, fmt::format("has said nothing for {:.1f} s ([pipeline] stall_seconds)", silent.count()));
    other.peer->give_up();
  }
}

// The box of a link, whoever asks first: its end here, or what comes for it. None once the segment has ended.
template <typename Box>
std::shared_ptr<Box> Ranks::box(std::map<Key, std::shared_ptr<Box>>& boxes, const Key& key) {
  const std::lock_guard lock(mutex_);
  if (key.first != 0 && key.first <= ended_segment_) return nullptr;
  auto& box = boxes[key];
  if (!box) box = std::make_shared<Box>();
  return box;
}

std::unique_ptr<Receiver> Ranks::receiver(int from, int64_t segment, const LinkId& id, int64_t capacity,
                                          Doorbell& bell) {
  return std::make_unique<RemoteReceiver>(*this, from, segment, id, capacity, box(inboxes_, {segment, id}), bell);
}

std::unique_ptr<Sender> Ranks::sender(int to, int64_t segment, const LinkId& id, int64_t capacity, Doorbell& bell) {
  return std::make_unique<RemoteSender>(*this, to, segment, id, capacity, box(outboxes_, {segment, id}), bell);
}

void Ranks::end_segment(int64_t segment) {
  const std::lock_guard lock(mutex_);
  ended_segment_ = std::max(ended_segment_, segment);
  const auto is_over = [&](const auto& entry) { return entry.first.first != 0 && entry.first.first <= segment; };
  std::erase_if(inboxes_, is_over);
  std::erase_if(outboxes_, is_over);
}

}  // namespace gyre
