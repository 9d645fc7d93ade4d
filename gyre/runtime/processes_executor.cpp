#include "gyre/runtime/processes_executor.h"

#include <ATen/ATen.h>

#include <chrono>
#include <exception>
#include <utility>

#include "gyre/core/error.h"
#include "gyre/core/exit_code.h"
#include "gyre/runtime/ranks/rank_transport.h"
#include "gyre/runtime/threads_run.h"
#include "gyre/schedule/builders.h"
#include "gyre/tensors/explain_torch.h"

namespace gyre {
namespace {

// What rank 0 sends the others. In a message, `number` is the command and `values` has its arguments.
enum class Command : int64_t { Run, Ask, End };
constexpr int64_t kCommands = 2;  // capacity: one command, and the end

LinkId commands_to(int rank) {
  return LinkId::of_rank(LinkKind::Command, rank);
}
// Number of the text line that carries questions and answers.
constexpr int kQuestions = 1;

Message run_message(int64_t number, const Segment& segment) {
  Message message;
  message.number = static_cast<int64_t>(Command::Run);
  message.values = {static_cast<double>(number),
                    segment.schedule->forward_only ? 1.0 : 0.0,
                    static_cast<double>(segment.first_microbatch),
                    static_cast<double>(segment.first_update),
                    static_cast<double>(segment.microbatches),
                    static_cast<double>(segment.traced_microbatches),
                    segment.weights == ModelWeights::Ema ? 1.0 : 0.0,
                    std::chrono::duration<double>(segment.started.time_since_epoch()).count()};
  return message;
}

// This process's time at which rank 0's clock shows `seconds`.
std::chrono::steady_clock::time_point here_at(double seconds, const ClockOffset& rank_0) {
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> here(seconds - rank_0.offset());
  return Clock::time_point(std::chrono::duration_cast<Clock::duration>(here));
}

// Runs this process's part of one segment.
SegmentReport run_here(Pipeline& pipeline, const Segment& segment, int64_t number, SegmentObserver* observer,
                       Ranks& ranks, const RankMap& map, Elsewhere elsewhere = {}) {
  elsewhere.raise_failure = [&ranks] { ranks.raise_failure(); };
  elsewhere.statuses = [&ranks] { return ranks.others(); };
  elsewhere.parts = [&ranks] { return ranks.parts(); };
  elsewhere.name_of = [&ranks](int rank) { return ranks.name_of(rank); };
  elsewhere.take_notes = [&ranks] { return ranks.take_notes(); };
  elsewhere.note = [&ranks](const std::string& line) { ranks.note(line); };
  const WrapTransport wrap = [&](Transport& memory, const Doorbells& bells) {
    return std::make_unique<RankTransport>(
        ranks, number, [&map](int worker) { return map.rank_of(worker); }, memory, bells);
  };
  ThreadsRun run(pipeline, segment, observer, wrap, std::move(elsewhere));
  const Ranks::Watch watch(ranks, run.bell(), [&run, &segment] {
    RankStatus status = run.status();
    status.stop = segment.stop.stop_requested();
    return status;
  });
  return run.run();
}

}  // namespace

ProcessesExecutor::ProcessesExecutor(Ranks& ranks, const RankMap& map) : ranks_(ranks), map_(map) {
  questions_.resize(static_cast<size_t>(ranks.world()));
  for (int rank = 1; rank < ranks.world(); ++rank) {
    questions_[static_cast<size_t>(rank)] = std::make_unique<TextLine>(ranks, rank, kQuestions);
  }
}

ProcessesExecutor::~ProcessesExecutor() {
  if (!told_end_) fail_run(kFailed);
}

SegmentReport ProcessesExecutor::run(Pipeline& pipeline, const Segment& segment, SegmentObserver& observer) {
  if (!std::exchange(room_is_known_, true)) check_room_for_worker_threads(pipeline);
  ranks_.raise_failure();
  const int64_t number = ++segments_;
  for (int rank = 1; rank < ranks_.world(); ++rank) {
    ranks_.send(rank, {Envelope::Kind::Message, 0, commands_to(rank), run_message(number, segment)});
  }
  return run_here(pipeline, segment, number, &observer, ranks_, map_);
}

std::vector<std::string> ProcessesExecutor::ask(const std::string& question, const std::function<void()>& meanwhile,
                                                const WhenLate& late) {
  std::vector<std::string> answers(questions_.size());
  for (int rank = 1; rank < ranks_.world(); ++rank) {
    Message message;
    message.number = static_cast<int64_t>(Command::Ask);
    ranks_.send(rank, {Envelope::Kind::Message, 0, commands_to(rank), std::move(message)});
    questions_[static_cast<size_t>(rank)]->say(question);
  }
  std::exception_ptr own;
  try {
    if (meanwhile) meanwhile();
  } catch (...) {  // an answer that is not heard now would be taken for that to the next question
    own = std::current_exception();
  }
  for (size_t rank = 1; rank < answers.size(); ++rank) {
    answers[rank] = questions_[rank]->hear({}, {late.seconds, [&, rank] { late.tell(static_cast<int>(rank)); }});
  }
  if (own) std::rethrow_exception(own);
  return answers;
}

void ProcessesExecutor::end_run(RunEnd end) {
  told_end_ = true;
  Message message;
  message.number = static_cast<int64_t>(Command::End);
  message.values = {static_cast<double>(end)};
  for (int rank = 1; rank < ranks_.world(); ++rank) {
    ranks_.send(rank, {Envelope::Kind::Message, 0, commands_to(rank), message});
  }
}

void ProcessesExecutor::fail_run(int exit_code) {
  told_end_ = true;
  ranks_.fail_all(exit_code);
}

namespace {

// Tells rank 0 that this process cannot go on, unless the run has failed already.
void report_failure(Ranks& ranks, const std::exception& error) {
  if (!ranks.failure()) ranks.report_failure(explain_torch(error));
}

// Carries out rank 0's commands until it sends the end.
RunEnd command_loop(Pipeline& pipeline, Ranks& ranks, const RankMap& map, const FollowerSources& sources) {
  Doorbell bell;
  const auto commands = ranks.receiver(0, 0, commands_to(ranks.rank()), kCommands, bell);
  TextLine questions(ranks, 0, kQuestions);
  const Schedule forward_only = build_forward_only(pipeline.schedule());
  check_room_for_worker_threads(pipeline);
  Elsewhere elsewhere;
  elsewhere.report_failure = [&ranks](const std::exception& error) { report_failure(ranks, error); };
  elsewhere.abandon = [&](const Error& why) {
    if (sources.abandon) sources.abandon(ranks.nobody_tells() ? why : Error(why.what(), ranks.exit_code()));
  };
  for (;;) {
    const Message message = wait_for(ranks, *commands, bell);
    const auto& values = message.values;
    switch (static_cast<Command>(message.number)) {
      case Command::Run: {
        Segment segment;
        const bool evaluates = values.at(1) != 0;
        segment.schedule = evaluates ? &forward_only : &pipeline.schedule();
        segment.batches = evaluates ? sources.evaluation : sources.train;
        segment.first_microbatch = static_cast<int64_t>(values.at(2));
        segment.first_update = static_cast<int64_t>(values.at(3));
        segment.microbatches = static_cast<int64_t>(values.at(4));
        segment.traced_microbatches = static_cast<int64_t>(values.at(5));
        segment.weights = values.at(6) != 0 ? ModelWeights::Ema : ModelWeights::Trained;
        segment.started = here_at(values.at(7), ranks.clock_of_rank_0());
        segment.stop = sources.stop;
        run_here(pipeline, segment, static_cast<int64_t>(values.at(0)), nullptr, ranks, map, elsewhere);
        break;
      }
      case Command::Ask:
        questions.say(sources.answer(questions.hear()));
        break;
      case Command::End:
        return static_cast<RunEnd>(values.at(0));
    }
  }
}

}  // namespace

RunEnd carry_out_commands(Pipeline& pipeline, Ranks& ranks, const RankMap& map, const FollowerSources& sources) {
  try {
    return command_loop(pipeline, ranks, map, sources);
  } catch (const std::exception& error) {  // libtorch's exceptions too
    report_failure(ranks, error);
    if (ranks.nobody_tells()) throw;
    throw ToldElsewhere(ranks.exit_code());
  }
}

}  // namespace gyre
