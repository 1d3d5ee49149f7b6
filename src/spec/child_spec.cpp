#include <coppice/base/ensure.hpp>
#include <coppice/spec/child_spec.hpp>

namespace coppice {

namespace detail {

// NOLINTNEXTLINE(cppcoreguidelines-rvalue-reference-param-not-moved): this default spawns nothing
result<pid> recipe::spawn(kernel&, birth&&) const {
  ensure(false, "a child with a start function was to be spawned by its supervisor");
  return pid{};
}

task<start_result> recipe::run(self&) const {
  ensure(false, "the start function of a child that has none was to be run");
  co_return start_result{ignored{}};
}

description recipe::describe() const {
  switch (how) {
    case kind::handshake: return {.kind = "server"};
    case kind::immediate: return {.kind = "function"};
    case kind::function: return {.kind = "start function"};
  }
  return {.kind = "unknown"};
}

void recipe::find_faults(const std::vector<std::string>&, std::vector<spec_fault>&) const {}

namespace {

template <class Text>
void apply(child_spec& spec, const child_settings<Text>& changes) {
  if (!changes.id.empty()) spec.id = std::string_view{changes.id};
  if (!changes.name.empty()) spec.name = std::string_view{changes.name};
  if (changes.restart) spec.restart = *changes.restart;
  if (changes.shutdown) spec.shutdown = *changes.shutdown;
  if (changes.type) spec.type = *changes.type;
  if (changes.significant) spec.significant = *changes.significant;
  if (changes.backoff) spec.backoff = *changes.backoff;
  if (changes.retry_first_start) spec.retry_first_start = *changes.retry_first_start;
  if (changes.start_within) spec.start_within = *changes.start_within;
  if (changes.mailbox) spec.mailbox = *changes.mailbox;
}

}  // namespace

child_spec with_defaults(child_spec spec, const child_defaults& defaults) {
  apply(spec, defaults);
  return spec;
}

}  // namespace detail

description child_start::describe() const { return recipe_ ? recipe_->describe() : description{.kind = "unknown"}; }

child_spec child_spec::with(const child_options& changes) const& { return child_spec{*this}.with(changes); }
child_spec child_spec::with(const child_options& changes) && {
  child_spec changed = std::move(*this);
  detail::apply(changed, changes);
  return changed;
}

}  // namespace coppice
