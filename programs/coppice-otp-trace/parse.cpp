#include <algorithm>
#include <map>

#include "words.hpp"

namespace otp_trace {
namespace {

using words = std::vector<std::string>;

/// Reads line by line, and remembers the declared ids.
class parser {
 public:
  scenario parse(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      const words w = words_of(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
      try {
        if (!w.empty()) statement(w);
      } catch (const bad_line& bad) {
        throw bad_scenario{line_, bad.what()};
      }
    }
    check_parents();
    return std::move(scenario_);
  }

 private:
  void statement(const words& w) {
    if (w[0] == "supervisor" || w[0] == "worker") {
      if (!scenario_.steps.empty()) throw bad_line{"declarations come before the steps"};
      declare(w);
    } else if (w[0] == "step") {
      if (scenario_.root.empty()) throw bad_line{"a step, but no supervisor is declared"};
      scenario_.steps.push_back(parse_step(w));
    } else {
      throw bad_line{"'" + w[0] + "' is not a statement; statements begin with supervisor, worker or step"};
    }
  }

  void declare(const words& w) {
    declaration d;
    if (w[0] == "supervisor") {
      if (w.size() < 6)
        throw bad_line{"expected: supervisor ID PARENT STRATEGY MAX_RESTARTS MAX_SECONDS [key=value...]"};
      d.what = declaration::kind::supervisor;
      d.strategy = parse_strategy(w[3]);
      d.limit = {.restarts = parse_number(w[4], "MAX_RESTARTS", 0),
                 .within = std::chrono::seconds{parse_number(w[5], "MAX_SECONDS", 1)}};
      d.how = parse_options(w, 6, options_of::supervisor);
    } else {
      if (w.size() < 3) throw bad_line{"expected: worker ID PARENT [key=value...]"};
      d.how = parse_options(w, 3, options_of::worker);
    }
    d.id = w[1];
    d.parent = w[2];
    name(d.id, d.what);
    place(d);
    scenario_.declarations.push_back(std::move(d));
    lines_.push_back(line_);
  }

  void place(const declaration& d) {
    const bool first = d.what == declaration::kind::supervisor && scenario_.root.empty();
    if (first && d.parent != "-") throw bad_line{"the first supervisor is the root: its PARENT is -"};
    if (!first && d.parent == "-") throw bad_line{"only the root, which is the first supervisor, has the PARENT -"};
    if (first) scenario_.root = d.id;
  }

  void name(const std::string& id, declaration::kind kind) {
    if (id.find('=') != std::string::npos) throw bad_line{"'" + id + "' is not a valid id: it contains ="};
    const auto known = kinds_.emplace(id, kind).first->second;
    if (known != kind) throw bad_line{"'" + id + "' is " + a(known) + " already"};
  }

  static std::string a(declaration::kind kind) {
    return kind == declaration::kind::worker ? "a worker" : "a supervisor";
  }

  /// Unknown ids are allowed: the answers to calls with them are compared as well.
  void expect(const std::string& id, declaration::kind kind) const {
    const auto known = kinds_.find(id);
    if (known != kinds_.end() && known->second != kind)
      throw bad_line{"'" + id + "' is " + a(known->second) + ", but this step is for " + a(kind)};
  }

  step parse_step(const words& w) {
    static const std::map<std::string, std::pair<step::kind, std::string>, std::less<>> forms = {
        {"crash", {step::kind::crash, "WORKER"}},
        {"exit", {step::kind::exit, "WORKER REASON"}},
        {"kill", {step::kind::kill, "ID"}},
        {"start_child", {step::kind::start_child, "SUPERVISOR CHILD [key=value...]"}},
        {"terminate_child", {step::kind::terminate_child, "SUPERVISOR CHILD"}},
        {"restart_child", {step::kind::restart_child, "SUPERVISOR CHILD"}},
        {"delete_child", {step::kind::delete_child, "SUPERVISOR CHILD"}},
        {"count", {step::kind::count, "SUPERVISOR"}},
        {"burst", {step::kind::burst, "SUPERVISOR STEP ;..."}},
        {"wait", {step::kind::wait, "MILLISECONDS"}},
        {"stop", {step::kind::stop, ""}},
    };
    const auto form = w.size() < 2 ? forms.end() : forms.find(w[1]);
    if (form == forms.end()) {
      std::string all;
      for (const auto& [word, meaning] : forms) all += " " + word;
      throw bad_line{(w.size() < 2 ? "the step is missing" : "'" + w[1] + "' is not a step") + "; steps are:" + all};
    }
    const auto& [kind, arguments] = form->second;
    const auto count = static_cast<std::size_t>(std::ranges::count(arguments, ' ')) + (arguments.empty() ? 2 : 3);
    const bool open = arguments.find("...") != std::string::npos;  // the last word may be missing
    if (open ? w.size() < count - 1 : w.size() != count)
      throw bad_line{"expected: step " + w[1] + (arguments.empty() ? "" : " ") + arguments};
    step s;
    s.what = kind;
    s.text = joined({w.begin() + 1, w.end()});
    fill(s, w);
    return s;
  }

  void fill(step& s, const words& w) {
    switch (s.what) {
      case step::kind::stop: return;
      case step::kind::wait: s.time = std::chrono::milliseconds{parse_number(w[2], "MILLISECONDS", 0)}; return;
      case step::kind::kill: s.target = w[2]; return;
      case step::kind::crash:
      case step::kind::exit:
        expect(w[2], declaration::kind::worker);
        s.target = w[2];
        if (s.what == step::kind::exit) s.reason = reason(w[3]);
        return;
      default: break;
    }
    expect(w[2], declaration::kind::supervisor);
    s.target = w[2];
    if (s.what == step::kind::burst) return burst(s, w);
    if (s.what != step::kind::count) s.child = w[3];
    if (s.what == step::kind::start_child) start_child(s, w);
  }

  void start_child(step& s, const words& w) {
    if (w.size() == 4) {
      if (!kinds_.contains(s.child))
        throw bad_line{"no spec was given for '" + s.child + "' yet: add keys, for example restart=permanent"};
      return;
    }
    expect(s.child, declaration::kind::worker);
    name(s.child, declaration::kind::worker);
    s.how = parse_options(w, 4, options_of::worker);
  }

  /// Parses the steps of a burst, which are separated by semicolons. The calls among them go to its supervisor.
  void burst(step& s, const words& w) {
    for (auto from = w.begin() + 3; from < w.end();) {
      const auto end = std::find(from, w.end(), ";");
      words one{"step"};
      one.insert(one.end(), from, end);
      from = end == w.end() ? end : end + 1;
      static const words calls = {"start_child", "terminate_child", "restart_child", "delete_child", "count"};
      static const words others = {"crash", "exit", "kill"};
      const std::string name = one.size() < 2 ? "" : one[1];
      if (std::ranges::find(calls, name) != calls.end()) {
        one.insert(one.begin() + 2, s.target);
      } else if (std::ranges::find(others, name) == others.end()) {
        throw bad_line{"'" + name + "' can't be part of a burst"};
      }
      s.parts.push_back(parse_step(one));
    }
  }

  static std::string reason(const std::string& word) {
    if (word != "normal" && word != "shutdown" && word != "shutdown+")
      throw bad_line{"REASON is '" + word + "', but can only be one of: normal, shutdown, shutdown+"};
    return word;
  }

  /// Checks that every declared child is below the root.
  void check_parents() const {
    if (scenario_.root.empty()) throw bad_scenario{line_, "the file ends, and no supervisor is declared"};
    std::map<std::string, std::string, std::less<>> parents;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const declaration& d = scenario_.declarations[i];
      const auto known = kinds_.find(d.parent);
      if (d.parent != "-" && (known == kinds_.end() || known->second != declaration::kind::supervisor))
        throw bad_scenario{lines_[i], "the PARENT of '" + d.id + "', '" + d.parent + "', is not a supervisor"};
      parents.emplace(d.id, d.parent);
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      std::string above = scenario_.declarations[i].parent;
      for (std::size_t height = 0; above != "-"; ++height) {
        if (height > parents.size())
          throw bad_scenario{lines_[i], "'" + scenario_.declarations[i].id + "' is not below the root"};
        above = parents.at(above);
      }
    }
  }

  scenario scenario_;
  int line_ = 0;
  std::vector<int> lines_;  // the line numbers of the declarations
  std::map<std::string, declaration::kind, std::less<>> kinds_;
};

}  // namespace

scenario parse(std::string_view text) { return parser{}.parse(text); }

}  // namespace otp_trace
