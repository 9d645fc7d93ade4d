// A stand-in for a rank: `stand_in WORD0 WORD1 ...`. Rank N does word N, a comma-separated list of actions:
//   exit:N   die:SIGNAL   say:TEXT (on stderr)   note:FILE (a line about itself)
//   gather   rank 0 goes on when all others have gathered
//   watch    rank 0 goes on when all others have ended, after they have gathered
//   tell:SIGNAL   sends it to the launcher
//   hear:SIGNAL   goes on when that signal comes
//   drain    ends as gyre does when a signal asks it to
//   ignore   ignores such signals, and goes on for ever
//   remove:FILE
//   clear:DIRECTORY   removes all that is in it
//   claim    as rank 0 does when the run's directory is its own
//   begin    as rank 0 does when the run has begun
//   finish   as rank 0 does when all is done
//   once:ACTION   ACTION if this is the first attempt, else nothing
// Signals stay pending from the start until an action takes them.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void give_up(const std::string& what) {
  std::perror(what.c_str());
  std::_Exit(99);
}

sigset_t signals_of(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  return set;
}

int wait_for(const sigset_t& set) {
  int number = 0;
  while (sigwait(&set, &number) != 0) {
  }
  return number;
}

void note(const std::string& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (descriptor < 0) give_up(file);
  struct stat store {};
  stat(variable("GYRE_STORE").c_str(), &store);
  std::ostringstream line;
  line << variable("GYRE_RANK") << " of " << variable("GYRE_WORLD_SIZE") << " here " << variable("GYRE_LOCAL_RANK")
       << " of " << variable("GYRE_LOCAL_WORLD_SIZE") << " restart " << variable("GYRE_RESTART") << " job "
       << variable("GYRE_JOB") << " store " << variable("GYRE_STORE") << " mode " << std::oct << (store.st_mode & 07777)
       << std::dec << " pid " << getpid() << " begun " << variable("GYRE_BEGUN") << "\n";
  const std::string text = line.str();
  if (write(descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size())) give_up(file);
  close(descriptor);
}

class StandIn {
 public:
  void act(const std::string& action) {
    const size_t colon = action.find(':');
    const std::string what = action.substr(0, colon);
    const std::string argument = colon == std::string::npos ? "" : action.substr(colon + 1);
    const auto number = [&] { return std::stoi(argument); };
    if (what == "exit") {
      std::_Exit(number());
    } else if (what == "die") {
      ::signal(number(), SIG_DFL);  // a sanitizer has a handler of its own
      const sigset_t set = signals_of({number()});
      sigprocmask(SIG_UNBLOCK, &set, nullptr);
      raise(number());
    } else if (what == "say") {
      std::fprintf(stderr, "%s\n", argument.c_str());
    } else if (what == "note") {
      note(argument);
    } else if (what == "gather") {
      gather();
    } else if (what == "watch") {
      watch();
    } else if (what == "tell") {
      kill(getppid(), number());
    } else if (what == "hear") {
      wait_for(signals_of({number()}));
    } else if (what == "drain") {
      std::_Exit(wait_for(signals_of({SIGINT, SIGTERM, SIGHUP})) == SIGINT ? 130 : 143);
    } else if (what == "ignore") {
      for (;;) pause();
    } else if (what == "remove") {
      if (unlink(argument.c_str()) != 0) give_up(argument);
    } else if (what == "clear") {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        std::filesystem::remove_all(entry.path());
      }
    } else if (what == "claim") {
      act("remove:" + variable("GYRE_STORE") + "/not-claimed");
    } else if (what == "begin") {
      act("remove:" + variable("GYRE_STORE") + "/not-begun");
    } else if (what == "finish") {
      const std::string mark = variable("GYRE_STORE") + "/done";
      if (open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600) < 0) give_up(mark);
    } else if (what == "once") {
      if (variable("GYRE_RESTART") == "0") act(argument);
    } else {
      give_up(action);
    }
  }

 private:
  // The other ranks write a byte into a pipe in the store, and keep it open until they end.
  void gather() {
    const std::string name = variable("GYRE_STORE") + "/gather";
    mkfifo(name.c_str(), 0600);  // whichever rank is first
    const bool is_rank_zero = variable("GYRE_RANK") == "0";
    const int both = is_rank_zero ? open(name.c_str(), O_RDWR) : -1;  // does not wait for a writer
    pipe_ = open(name.c_str(), is_rank_zero ? O_RDONLY : O_WRONLY);
    if (pipe_ < 0) give_up(name);
    if (!is_rank_zero) {
      if (write(pipe_, "x", 1) != 1) give_up(name);
      return;
    }
    for (int others = std::stoi(variable("GYRE_WORLD_SIZE")) - 1; others > 0; --others) {
      char byte = 0;
      if (read(pipe_, &byte, 1) != 1) give_up(name);
    }
    close(both);
  }
  void watch() {
    char byte = 0;
    while (read(pipe_, &byte, 1) > 0) {
    }
  }
  int pipe_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
  const sigset_t set = signals_of({SIGINT, SIGTERM, SIGHUP, SIGUSR1});
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const int rank = std::stoi(variable("GYRE_RANK"));
  if (rank + 1 >= argc) give_up("no word for this rank");
  std::istringstream actions(argv[rank + 1]);
  StandIn stand_in;
  for (std::string action; std::getline(actions, action, ',');) stand_in.act(action);
  return 0;
}
