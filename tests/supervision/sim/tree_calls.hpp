#pragma once
/// The model of a supervisor's calls: their answers, and the steps that they cause.
#include "tree_state.hpp"

namespace coppice::random_trees {

inline answer refusal(error_code code) { return {.failed = code}; }

inline row row_of(const kid& k) { return {k.spec->id, k.is == kid::status::running ? k.who : pid{}, k.state()}; }

/// Whether a supervisor refuses the child. Covers only what the random specs contain.
inline bool bad_combination(const child_spec& spec, auto_shutdown when) {
  if (spec.significant && (when == auto_shutdown::never || spec.restart == restart::permanent)) return true;
  return spec.backoff && spec.restart == restart::temporary;
}

inline std::optional<answer> serve_start_child(state& s, const call& c, std::size_t number) {
  if (bad_combination(*c.spec, s.flags->auto_shutdown)) return refusal(errc::bad_combination);
  if (const kid* known = s.find(c.spec->id))
    return refusal(known->is == kid::status::running ? supervision_errc::already_started
                                                     : supervision_errc::already_present);
  const std::size_t child = s.add(*c.spec).number;
  s.todo.push_back({.what = step::kind::start, .child = child, .because = step::why::add, .call = number});
  return std::nullopt;
}

inline std::optional<answer> serve_upgrade(state& s, const call& c) {
  for (const child_spec& spec : c.tree->children)
    if (bad_combination(spec, c.tree->auto_shutdown)) return refusal(errc::bad_combination);
  for (const child_spec& spec : c.tree->children) {
    if (kid* known = s.find(spec.id))
      known->spec = std::make_shared<const child_spec>(spec);
    else
      s.add(spec);
  }
  const auto place = [&](const kid& k) {
    return std::ranges::find(c.tree->children, k.spec->id, &child_spec::id) - c.tree->children.begin();
  };
  // A stable sort, in which those that are not named have the last place.
  for (auto k = s.kids.begin(); k != s.kids.end(); ++k)
    std::rotate(std::ranges::upper_bound(s.kids.begin(), k, place(*k), {}, place), k, k + 1);
  s.flags = c.tree;
  mark("upgraded");
  return answer{};
}

inline answer counts_of(const state& s) {
  answer a;
  a.counts.specs = s.kids.size();
  for (const kid& k : s.kids) {
    ++(k.spec->type == child_type::supervisor ? a.counts.supervisors : a.counts.workers);
    if (k.is == kid::status::running) ++a.counts.active;
  }
  return a;
}

/// Serves a call about a known child. Nothing: the answer follows when the steps in `todo` are done.
inline std::optional<answer> serve_for(state& s, kid& k, const call& c, std::size_t number) {
  const answer ok{};
  switch (c.what) {
    case ask::terminate_child:
      if (k.is == kid::status::running) s.todo.push_back({.what = step::kind::stop, .child = k.number});
      if (k.is == kid::status::waiting) mark("terminated while it waits");
      if (k.is == kid::status::retrying) mark("terminated between two attempts");
      if (k.is != kid::status::running) k.go_down();
      start_followers(s, k.number);
      if (k.temporary()) s.todo.push_back({.what = step::kind::forget, .child = k.number});
      s.todo.push_back({.what = step::kind::reply, .call = number});
      return std::nullopt;
    case ask::restart_child:
    case ask::delete_child:
      if (k.state() == child_state::running) return refusal(supervision_errc::running);
      if (k.state() == child_state::restarting) return refusal(supervision_errc::restarting);
      if (c.what == ask::delete_child) {
        s.forget(k.number);
        return ok;
      }
      s.todo.push_back({.what = step::kind::start, .child = k.number, .because = step::why::by_hand, .call = number});
      return std::nullopt;
    case ask::retry_now:
      if (k.is != kid::status::waiting) return refusal(errc::invalid);
      mark("tried before its time");
      restart_group(s, k.number);
      s.todo.push_back({.what = step::kind::reply, .call = number, .tells_of_start = true});
      return std::nullopt;
    case ask::which_child: return answer{.rows = {row_of(k)}};
    default: return ok;
  }
}

inline state serve(state s, const call& c, std::size_t number) {
  ++s.calls;
  std::optional<answer> now;
  if (c.what == ask::start_child) {
    now = serve_start_child(s, c, number);
  } else if (c.what == ask::upgrade) {
    now = serve_upgrade(s, c);
  } else if (c.what == ask::count_children) {
    now = counts_of(s);
  } else if (c.what == ask::which_children) {
    now.emplace();
    for (const kid& k : s.kids) now->rows.push_back(row_of(k));
  } else if (kid* k = s.find(c.id)) {
    now = serve_for(s, *k, c, number);
  } else {
    now = refusal(errc::not_found);
  }
  if (now) s.replies.emplace_back(number, std::move(*now));
  s.go_on();
  return s;
}

inline bool agrees(const answer& expected, const answer& got) {
  if (expected.any_error) return got.failed.has_value();
  answer as_far = got;
  // The supervisor may count fewer: the model does not know yet that a child has just ended.
  if (as_far.counts.active <= expected.counts.active) as_far.counts.active = expected.counts.active;
  return as_far == expected;
}

}  // namespace coppice::random_trees
