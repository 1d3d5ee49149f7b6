#pragma once
/// The members of a random tree, the processes that ask supervisors, and who looks on.
#include <stdexcept>

#include "tree_log.hpp"

namespace coppice::random_trees {

struct deed {
  enum class kind : std::uint8_t { nothing, finish, fail, unlink };
  kind what = kind::finish;
  exit_reason why{};
};

enum class luck : std::uint8_t { good, late, ignore, refuse, stop, failure };

/// What becomes of a start.
inline luck luck_of(program& p, const attempt& a) {
  const bool patient = a.what->how.start_within.has_value();
  if (p.calm) return luck::good;
  if (!p.dice.chance(p.weather)) return p.dice.chance(patient ? 0.5 : 0.2) ? luck::late : luck::good;
  constexpr std::array bad{luck::late, luck::ignore, luck::refuse, luck::stop, luck::failure};
  return bad.at(p.dice.below(bad.size()));
}

inline std::chrono::nanoseconds some_wait(program& p) {
  return p.dice.chance(0.5) ? p.dice.between(0ns, 10us) : p.dice.between(0ns, 800ms);
}

/// A server.
class member {
 public:
  static constexpr bool traps_exits = false;  // the constructor decides
  using protocol = coppice::protocol<deed>;

  member(self& me, program* p, std::size_t number) : program_{p}, number_{number} {
    me.trap_exits(mine().what->traps ? trap::on : trap::off);
  }
  task<init_result> init(self& me) {
    const luck how = luck_of(*program_, mine());
    if (how > luck::late && !mine().what->named && program_->dice.chance(0.2)) {
      me.unlink(me.parent());
      mine().unlinked = true;
    }
    if (how != luck::good) co_await me.sleep(some_wait(*program_));
    using word = attempt::word;
    mine().said = how == luck::ignore ? word::ignore : how <= luck::late ? word::ready : word::fail;
    if (how == luck::ignore) co_return init_result::ignore();
    if (how == luck::refuse) co_return init_result::fail(error{errc::invalid, "not today"});
    if (how == luck::stop) co_return init_result::stop(exit_reason::error("not like this"));
    if (how == luck::failure) throw std::runtime_error{"out of luck"};
    co_return init_result::ok();
  }
  task<void> terminate(const exit_reason&, self& me) {
    if (mine().what->lingers.count() > 0) co_await me.sleep(mine().what->lingers);
  }
  void handle(deed d, self& me) {
    if (d.what == deed::kind::fail) throw std::runtime_error{"failed"};
    if (d.what == deed::kind::finish) return me.stop(std::move(d.why));
    if (d.what == deed::kind::nothing || mine().what->named) return;  // an orphan would keep the name for ever
    me.unlink(me.parent());
    mine().unlinked = true;
  }
  static void handle(const exited&) {}

 private:
  [[nodiscard]] attempt& mine() { return program_->attempts[number_]; }
  program* program_;
  std::size_t number_;
};

/// A function.
inline task<> member_body(self& me, program* p, std::size_t number) {
  const plan what = p->attempts[number].what;
  if (what->traps) me.trap_exits();
  for (;;) {
    auto m = co_await me.receive<deed, exited>();
    if (auto* x = std::get_if<exited>(&m)) {
      if (what->ignores_exits || x->from != me.parent()) continue;
      if (what->lingers.count() > 0) co_await me.sleep(what->lingers);
      const exit_reason why = x->reason;
      co_await me.exit(why);
    }
    auto& d = std::get<deed>(m);
    if (d.what == deed::kind::fail) throw std::runtime_error{"failed"};
    if (d.what == deed::kind::unlink && !what->named) {
      me.unlink(me.parent());
      p->attempts[number].unlinked = true;
    }
    if (d.what != deed::kind::finish) continue;
    const exit_reason why = d.why;
    co_await me.exit(why);
  }
}

/// A start function of the user's own, which runs in the supervisor.
inline task<start_result> own_start(self& sup, program* p, std::size_t number) {
  const luck how = luck_of(*p, p->attempts[number]);
  if (how != luck::good) co_await sup.sleep(some_wait(*p));
  using word = attempt::word;
  p->attempts[number].said = how == luck::ignore ? word::ignore : how <= luck::late ? word::ready : word::fail;
  if (how == luck::ignore) co_return start_result{ignored{}};
  if (how == luck::failure) throw std::runtime_error{"out of luck"};
  if (how > luck::late) co_return start_result{error{errc::invalid, "not today"}};
  const pid made = sup.spawn_link(member_body, p, number);
  p->spawned(number, made);
  co_return start_result{made};
}

[[nodiscard]] child_spec spec_of(program& p, const plan& what);

/// What a supervisor of the tree is told by its init.
inline std::optional<supervisor_spec> init_of(program* p, std::size_t number) {
  attempt& a = p->attempts[number];
  const luck how = luck_of(*p, a);
  using word = attempt::word;
  a.said = how == luck::ignore ? word::ignore : how == luck::failure ? word::fail : word::none;
  if (how == luck::ignore) return std::nullopt;
  if (how == luck::failure) throw std::runtime_error{"out of luck"};
  supervisor_spec spec = a.what->flags;
  for (const plan& c : a.what->children) spec.children.push_back(spec_of(*p, c));
  a.spec = std::make_shared<const supervisor_spec>(spec);
  return spec;
}
inline std::function<std::optional<supervisor_spec>()> init_for(program* p, std::size_t number) {
  return [p, number] { return init_of(p, number); };
}

class tree_recipe final : public detail::recipe {
 public:
  tree_recipe(program& p, plan what) : recipe{kind_of(*what)}, program_{p}, what_{std::move(what)} {}
  [[nodiscard]] const plan& what() const noexcept { return what_; }
  [[nodiscard]] result<pid> spawn(detail::kernel& k, detail::birth&& with) const override {
    const std::size_t number = program_.begin(with.parent, what_);
    result<pid> made = spawn_as(k, std::move(with), number);
    if (made) program_.spawned(number, *made);
    return made;
  }
  [[nodiscard]] task<start_result> run(self& sup) const override {
    return own_start(sup, &program_, program_.begin(sup.id(), what_));
  }

 private:
  static kind kind_of(const plant& what) {
    switch (what.what) {
      case plant::kind::body: return kind::immediate;
      case plant::kind::own_start: return kind::function;
      default: return kind::handshake;
    }
  }
  [[nodiscard]] result<pid> spawn_as(detail::kernel& k, detail::birth&& with, std::size_t number) const {
    program* p = &program_;
    if (what_->what == plant::kind::server) return detail::spawn_object<member>(k, std::move(with), p, number);
    if (what_->what == plant::kind::supervisor)
      return detail::spawn_object<supervisor>(k, std::move(with), init_for(p, number));
    return detail::spawn_coroutine(k, std::move(with), &member_body, p, number);
  }
  program& program_;
  plan what_;
};

inline child_spec spec_of(program& p, const plan& what) {
  child_spec spec;
  spec.id = what->id;
  if (what->named) spec.name = what->id;
  spec.start = child_start{std::make_shared<tree_recipe>(p, what)};
  if (what->what == plant::kind::supervisor) spec.type = child_type::supervisor;
  return std::move(spec).with(what->how);
}

/// The parent of the root.
struct end_root {
  exit_reason why;
};
inline task<> parent_of_root(self& me, program* p, plan what) {
  me.trap_exits();
  const std::size_t number = p->begin(me.id(), what);
  const pid root = me.spawn_link<supervisor>(init_for(p, number)).id();
  p->spawned(number, root);
  for (;;) {
    auto m = co_await me.receive<exited, end_root>();
    if (std::holds_alternative<exited>(m)) co_return;
    me.exit(root, std::get<end_root>(m).why);
  }
}

/// Asks supervisors, one thing after the other.
struct to_ask {
  std::size_t call;
};
struct to_exit {
  pid who;
  exit_reason why;
};
struct to_forge {
  pid sup;
  exited news;
};

template <class T>
answer answer_of(const result<T>& got) {
  answer a;
  if (!got) {
    a.failed = got.error().code();
    return a;
  }
  if constexpr (std::is_same_v<T, pid>) a.who = *got;
  if constexpr (std::is_same_v<T, child_counts>) a.counts = *got;
  if constexpr (std::is_same_v<T, child_info>) a.rows = {{got->id, got->who, got->state}};
  if constexpr (std::is_same_v<T, std::vector<child_info>>)
    for (const child_info& c : *got) a.rows.push_back({c.id, c.who, c.state});
  return a;
}
template <class M>
task<answer> answer_to(pending_call<M> made) {
  const auto got = co_await std::move(made);
  co_return answer_of(got);
}
inline task<answer> ask_for(const call& c) {
  const ref<supervisor> sup{c.sup};
  switch (c.what) {
    case ask::start_child: return answer_to(start_child(sup, *c.spec));
    case ask::terminate_child: return answer_to(terminate_child(sup, c.id));
    case ask::restart_child: return answer_to(restart_child(sup, c.id));
    case ask::delete_child: return answer_to(delete_child(sup, c.id));
    case ask::retry_now: return answer_to(retry_now(sup, c.id));
    case ask::which_children: return answer_to(which_children(sup));
    case ask::which_child: return answer_to(which_child(sup, c.id));
    case ask::count_children: return answer_to(count_children(sup));
    case ask::get_childspec: return answer_to(get_childspec(sup, c.id));
    case ask::history: return answer_to(exit_history(sup, c.id));
    case ask::upgrade: break;
  }
  return answer_to(upgrade(sup, *c.tree));
}

inline task<> client(self& me, program* p) {
  for (;;) {
    auto m = co_await me.receive<to_ask, to_exit, to_forge>();
    if (auto* x = std::get_if<to_exit>(&m)) {
      me.exit(x->who, x->why);
    } else if (auto* f = std::get_if<to_forge>(&m)) {
      me.send(f->sup, f->news);
    } else {
      const std::size_t number = std::get<to_ask>(m).call;
      p->calls[number].sent = true;
      p->write({.what = entry::kind::sent, .sup = p->calls[number].sup, .number = number});
      task<answer> asked = ask_for(p->calls[number]);
      answer got = co_await std::move(asked);
      p->calls[number].got = std::move(got);
      p->write({.what = entry::kind::answered, .sup = p->calls[number].sup, .number = number});
    }
  }
}

/// Writes down what the event stream tells.
inline task<> observer(self& me, program* p) {
  for (;;) {
    auto m = co_await me.receive<process_ended, supervisor_event>();
    if (auto* e = std::get_if<process_ended>(&m)) {
      if (attempt* a = p->find(e->who)) {
        a->end = e->reason;
        a->ended = me.now();
      }
      p->write({.what = entry::kind::ended, .who = e->who, .reason = e->reason});
    } else {
      auto& said = std::get<supervisor_event>(m);
      p->published[said.supervisor].push_back(said);
    }
  }
}

}  // namespace coppice::random_trees
