// Work shared out to jobs: one, several, and a stream of them with a few at a time.
#include <chrono>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <coppice/coppice.hpp>

using namespace std::chrono_literals;
using coppice::async_job;
using coppice::async_nolink;
using coppice::async_stream_nolink;
using coppice::await_many;
using coppice::job;
using coppice::result;
using coppice::self;
using coppice::task;

namespace {

int primes_up_to(int n) {
  int count = 0;
  for (int i = 2; i <= n; ++i) {
    bool prime = true;
    for (int j = 2; prime && j * j <= i; ++j) prime = i % j != 0;
    count += prime ? 1 : 0;
  }
  return count;
}

// A job that waits, as if for a network.
task<std::string> fetch(self& me, std::string url) {
  co_await me.sleep(url == "a.example" ? 20ms : 1ms);
  if (url == "c.example") throw std::runtime_error{"no route to " + url};
  if (url == "d.example") co_await me.sleep(1h);
  co_return "the page of " + url;
}

task<> one_job(self& me) {
  auto primes = async_job(me, primes_up_to, 1000);  // runs from here on
  const result<int> count = co_await primes.await();
  std::cout << "primes up to 1000: " << *count << '\n';
}

task<> several_jobs(self& me) {
  std::vector<job<int>> jobs;
  for (const int n : {10, 100, 1000}) jobs.push_back(async_job(me, primes_up_to, n));
  const result<std::vector<int>> counts = co_await await_many(jobs);
  for (const int count : *counts) std::cout << "primes: " << count << '\n';
}

task<> patience(self& me) {
  auto slow = async_nolink(me, fetch, "d.example");
  const std::optional<result<std::string>> page = co_await slow.yield(5ms);
  std::cout << (page ? "a page" : "not yet") << '\n';
  const std::optional<result<std::string>> last = co_await slow.shutdown();
  std::cout << (last ? "a page after all" : "stopped") << '\n';
}

// All pages, two at a time, in the order of the urls; a failure and a page that takes too long are just results.
task<> a_stream(self& me) {
  const std::vector<std::string> urls{"a.example", "b.example", "c.example", "d.example", "e.example"};
  auto pages = async_stream_nolink(me, urls, fetch,
                                   {.max_concurrency = 2, .timeout = 1s, .on_timeout = coppice::on_timeout::kill});
  for (;;) {
    const std::optional<result<std::string>> page = co_await pages.next();
    if (!page) break;
    std::cout << (*page ? **page : "no page: " + std::string{to_string(page->error().code())}) << '\n';
  }
}

task<> everything(self& me) {
  co_await one_job(me);
  co_await several_jobs(me);
  co_await patience(me);
  co_await a_stream(me);
}

}  // namespace

int main() {
  coppice::runtime rt{coppice::runtime_options{.level = coppice::log_level::off}};
  const coppice::exit_reason how = rt.run(everything);
  std::cout << "ended: " << how << '\n';
}
