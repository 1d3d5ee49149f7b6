#include "generate.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include <coppice/sim/world.hpp>

namespace otp_trace {
namespace {

// Constraints on scenarios. A scenario must have exactly one outcome on OTP, however slow the machine is:
// - A stubborn worker has a short shutdown time, since it uses all of it, in real time. Other workers have seconds, so
//   that their time never runs out.
// - A supervisor that may be killed has only workers that do not trap exits: others would print their end while the
//   supervisor above continues. Such supervisors and workers are called silent here.
// - OTP counts the restart window in whole seconds. So either all restarts happen well within it, or a wait of over a
//   second separates those inside the window from those outside.
// - A burst contains only workers of its supervisor, because only that supervisor is suspended.
// - An id keeps these properties even if a later step gives it a new spec.
// Steps rarely concern a child that is probably down, except to start it again: most steps should find a live process.

struct worker {
  std::string id;
  std::string home;  // its supervisor
  bool silent = false;
  bool stubborn = false;
  bool permanent = false;  // this and the next: as declared
  bool temporary = false;
  bool down = false;     // probably
  bool strayed = false;  // it was also started under another supervisor
};

struct supervisor {
  std::string id;
  std::string home;
  bool silent = false;
  bool shuts_down = false;  // by auto_shutdown
  bool down = false;        // probably
};

using texts = std::initializer_list<const char*>;

class generator {
 public:
  explicit generator(std::uint64_t seed) : dice_{seed} {}

  std::string scenario() {
    waits_ = chance(0.025);
    has_stubborn_ = !waits_ && chance(0.3);
    has_mistakes_ = chance(0.05);
    lenient_ = chance(0.8);
    fails_often_ = chance(0.25);
    declare_supervisor("-", 1);
    if (workers_.empty()) declare_worker(supervisors_.front());
    declared_ = workers_.size();
    const std::uint64_t steps = between(5, waits_ ? 8 : 15);
    const std::uint64_t pause_at = waits_ ? between(3, steps - 1) : 0;
    for (std::uint64_t i = 1; i <= steps; ++i) {
      if (i == pause_at) {
        line("step wait " + one_of({"2300", "2300", "120"}));
      } else {
        step();
      }
    }
    return text_;
  }

 private:
  // -- the tree

  void declare_supervisor(const std::string& parent, int level) {
    const bool root = level == 1;
    const supervisor s{.id = root ? "root" : "s" + std::to_string(supervisors_.size()),
                       .home = parent,
                       .silent = !root && chance(0.15),
                       .shuts_down = chance(root ? 0.08 : 0.3)};
    std::string words = one_of({"one_for_one", "one_for_all", "rest_for_one"}) + limit(level);
    if (s.shuts_down) words += " auto_shutdown=" + one_of({"any_significant", "all_significant"});
    if (!root) words += restart(find(parent).shuts_down);
    if (!root && chance(0.5))
      words += " shutdown=" + one_of(s.silent ? texts{"brutal_kill", "5000"} : texts{"infinity", "5000"});
    line("supervisor " + s.id + " " + parent + " " + words);
    supervisors_.push_back(s);
    for (std::uint64_t children = between(0, 4); children > 0; --children) {
      const bool deeper = !s.silent && level < 3 && supervisors_.size() < 5 && chance(root ? 0.45 : 0.25);
      if (deeper) {
        declare_supervisor(s.id, level + 1);
      } else if (workers_.size() < 8) {
        declare_worker(s);
      }
    }
  }

  void declare_worker(const supervisor& home) {
    const std::string type = restart(home.shuts_down);
    const worker w{.id = std::string(1, static_cast<char>('a' + workers_.size())),
                   .home = home.id,
                   .silent = home.silent || chance(0.15),
                   .stubborn = has_stubborn_ && chance(0.4),
                   .permanent = type.find("restart=t") == std::string::npos,
                   .temporary = type.find("temporary") != std::string::npos};
    const std::string words = "worker " + w.id + " " + home.id + type + manners(w) + starts(chance(0.02));
    line(words);
    if (has_mistakes_ && chance(0.04)) line(words);  // a duplicate id
    workers_.push_back(w);
  }

  /// How many restarts in how many seconds.
  std::string limit(int level) {
    const std::uint64_t most = has_stubborn_ ? 2 : 5;  // each restart may take the shutdown time of a stubborn worker
    const std::uint64_t least = !lenient_ ? 0 : level == 1 ? most : most - 1;
    const std::uint64_t seconds = waits_ ? 1 : has_stubborn_ ? 5 : between(4, 5);
    return " " + std::to_string(between(least, most)) + " " + std::to_string(seconds);
  }

  /// The restart type, and whether the child is significant: mostly in valid combinations, sometimes in invalid ones.
  std::string restart(bool may_be_significant) {
    if (has_mistakes_ && chance(0.2))
      return " significant=true" + some(0.5, " restart=" + one_of({"permanent", "transient"}));
    if (may_be_significant && chance(0.6)) return " significant=true restart=" + one_of({"transient", "temporary"});
    return some(0.1, " significant=false") + some(0.85, " restart=" + one_of({"permanent", "permanent", "permanent",
                                                                              "transient", "transient", "temporary"}));
  }

  /// How a worker reacts to a request to end.
  std::string manners(const worker& w) {
    std::string words = w.silent ? " trap=false" : "";
    if (w.stubborn) return words + " stubborn=true shutdown=" + one_of({"40", "60", "brutal_kill"});
    return words + some(0.7, " shutdown=" + one_of(w.silent ? texts{"0", "10", "1000", "infinity", "brutal_kill"}
                                                            : texts{"4000", "5000", "infinity", "brutal_kill"}));
  }

  std::string starts(bool badly) {
    if (!badly && chance(fails_often_ ? 0.2 : 0.6)) return {};
    std::string words = " starts=" + one_of(badly ? texts{"fail", "ignore"} : texts{"ok"});
    for (std::uint64_t more = between(0, 4); more > 0; --more)
      words += "," + (fails_often_ && chance(0.4) ? "fail" : one_of({"ok", "ok", "ok", "fail", "fail", "ignore"}));
    return words;
  }

  // -- the steps

  void step() {
    if (chance(0.6)) focus_ = dice_.below(workers_.size());
    worker& w = workers_[focus_];
    supervisor& home = find(w.home);
    if (home.down && home.home != "-" && chance(0.7)) {
      home.down = false;
      return line((chance(0.8) ? "step restart_child " : "step start_child ") + home.home + " " + home.id);
    }
    const std::uint64_t pick = w.down && chance(0.8) ? between(53, 92) : dice_.below(100);
    if (pick < 20) {
      w.down = w.temporary;
      line("step crash " + w.id);
    } else if (pick < 34) {
      w.down = !w.permanent;
      line("step exit " + w.id + " " + one_of({"normal", "shutdown", "shutdown+"}));
    } else if (pick < 41) {
      line("step kill " + (chance(0.4) ? silent_supervisor(w.id) : w.id));
    } else if (pick < 53) {
      burst(home);
    } else if (pick < 66) {
      start_child();
    } else if (pick < 93) {
      call();
    } else if (pick < 99) {
      line("step count " + any_supervisor().id);
    } else {
      line(chance(0.3) ? "step stop" : "step crash nobody");
    }
  }

  void burst(const supervisor& s) {
    std::string words = "step burst " + s.id;
    std::string separator = " ";
    for (std::uint64_t parts = between(2, 5); parts > 0; --parts) {
      words += separator + part_of_burst(s);
      separator = " ; ";
    }
    line(words);
  }

  std::string part_of_burst(const supervisor& s) {
    std::vector<std::size_t> own;
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (workers_[i].home == s.id && !workers_[i].strayed) own.push_back(i);
    if (own.empty() || chance(0.05)) return chance(0.5) ? "count" : "restart_child nobody";
    const bool stays = std::ranges::find(own, focus_) != own.end() && chance(0.5);
    if (!stays) focus_ = own[dice_.below(own.size())];
    const worker& w = workers_[focus_];
    if (chance(0.6)) {
      // A stubborn worker is only killed: with another reason it may hang, and a burst waits for its end.
      if (w.stubborn || chance(0.25)) return "kill " + w.id;
      if (chance(0.6)) return "crash " + w.id;
      return "exit " + w.id + " " + one_of({"normal", "shutdown", "shutdown+"});
    }
    if (chance(0.2)) return "start_child " + w.id + some(0.5, new_spec(s, w));
    return one_of({"terminate_child ", "restart_child ", "restart_child ", "delete_child "}) + w.id;
  }

  std::string new_spec(const supervisor& s, const worker& w) {
    const bool odd = chance(0.1);  // a significant child, perhaps where that is not allowed
    return " restart=" + one_of({"permanent", "transient", "temporary"}) +
           some(odd || s.shuts_down ? 0.5 : 0, " significant=true") + manners(w) + starts(chance(0.3));
  }

  void start_child() {
    const supervisor s = chance(0.8) ? find(workers_[focus_].home) : any_supervisor();
    if (chance(0.4)) focus_ = newcomer(s);
    worker& w = workers_[focus_];
    if (s.silent && !w.silent) return line("step count " + s.id);
    const bool is_new = w.home.empty();
    w.strayed = w.strayed || (!is_new && w.home != s.id);
    if (focus_ >= declared_) w.home = s.id;
    w.down = false;
    line("step start_child " + s.id + " " + w.id + some(is_new ? 1 : 0.4, new_spec(s, w)));
  }

  /// The place of the worker x, or y if the worker has to be silent. Adds the worker if it is new.
  std::size_t newcomer(const supervisor& s) {
    const std::string id = s.silent || chance(0.3) ? "y" : "x";
    for (std::size_t i = declared_; i < workers_.size(); ++i)
      if (workers_[i].id == id) return i;
    workers_.push_back({.id = id, .home = {}, .silent = id == "y", .stubborn = has_stubborn_ && chance(0.3)});
    return workers_.size() - 1;
  }

  /// A call to a supervisor about one of its children, which may itself be a supervisor, or about an unknown id.
  void call() {
    worker& w = workers_[focus_];
    const std::string what = kind_of_call(w.down);
    const supervisor& s = any_supervisor();
    if (chance(0.03)) return line(what + s.id + " nobody");
    if (chance(0.02)) return line(what + "nowhere " + w.id);
    if (chance(0.05)) return line(what + s.id + " " + w.id);
    if (s.home != "-" && chance(0.25)) return call_about(find(s.id));
    if (what.starts_with("step t")) w.down = true;
    if (what.starts_with("step r")) w.down = false;
    line(what + w.home + " " + w.id);
  }

  void call_about(supervisor& s) {
    const std::string what = kind_of_call(s.down);
    s.down = !what.starts_with("step r");
    line(what + s.home + " " + s.id);
  }

  std::string kind_of_call(bool down) {
    if (down)
      return "step " +
             one_of({"restart_child ", "restart_child ", "restart_child ", "delete_child ", "terminate_child "});
    return "step " +
           one_of({"terminate_child ", "terminate_child ", "terminate_child ", "restart_child ", "delete_child "});
  }

  // -- chance and text

  std::uint64_t between(std::uint64_t low, std::uint64_t high) { return low + dice_.below(high - low + 1); }
  bool chance(double p) { return dice_.chance(p); }
  std::string one_of(texts all) { return all.begin()[dice_.below(all.size())]; }
  std::string some(double p, const std::string& words) { return chance(p) ? words : std::string{}; }
  const supervisor& any_supervisor() { return supervisors_[dice_.below(supervisors_.size())]; }
  [[nodiscard]] supervisor& find(const std::string& id) {
    for (supervisor& s : supervisors_)
      if (s.id == id) return s;
    return supervisors_.front();
  }
  [[nodiscard]] std::string silent_supervisor(const std::string& otherwise) const {
    for (const supervisor& s : supervisors_)
      if (s.silent) return s.id;
    return otherwise;
  }
  void line(const std::string& words) { text_ += words + "\n"; }

  coppice::sim::dice dice_;
  bool waits_ = false;
  bool has_stubborn_ = false;
  bool has_mistakes_ = false;
  bool lenient_ = false;
  bool fails_often_ = false;
  std::vector<supervisor> supervisors_;
  std::vector<worker> workers_;
  std::size_t declared_ = 0;  // how many workers are declared; those behind them are added by start_child
  std::size_t focus_ = 0;     // the worker that steps concern; it changes only now and then
  std::string text_;
};

}  // namespace

std::string generate(std::uint64_t seed) {
  return "# seed " + std::to_string(seed) + "\n" + generator{seed}.scenario();
}

}  // namespace otp_trace
