// A program that uses spdlog: the records of Coppice go to the same logger as the program's own lines.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <stdexcept>
#include <string>

#include <coppice/coppice.hpp>

namespace {

/// Thread safety: any thread, as the logger allows it.
class to_spdlog final : public coppice::log_sink {
 public:
  explicit to_spdlog(std::shared_ptr<spdlog::logger> to) : to_{std::move(to)} {}

  void write(const coppice::log_record& record) override {
    const spdlog::level::level_enum level = level_of(record.level);
    if (!to_->should_log(level)) return;
    std::string line = "[" + std::string{record.part} + "] " + std::string{record.text};
    for (const coppice::log_field& f : record.fields) line.append(" ").append(f.key).append("=").append(f.value);
    to_->log(record.at, spdlog::source_loc{}, level, line);
  }

 private:
  static spdlog::level::level_enum level_of(coppice::log_level level) {
    switch (level) {
      case coppice::log_level::debug: return spdlog::level::debug;
      case coppice::log_level::info: return spdlog::level::info;
      case coppice::log_level::warning: return spdlog::level::warn;
      case coppice::log_level::error: return spdlog::level::err;
      case coppice::log_level::off: break;
    }
    return spdlog::level::off;
  }
  std::shared_ptr<spdlog::logger> to_;
};

constexpr coppice::log_part db{"db"};

coppice::task<> opens_a_database(coppice::self& me) {
  me.log(db, coppice::log_level::debug, "opened", {{"path", "data.db"}});
  me.log(coppice::log_level::debug, "below the level of the program");
  throw std::runtime_error{"the disk is full"};
  co_return;
}

}  // namespace

int main() {
  const auto logger = spdlog::stdout_logger_mt("example");
  logger->set_level(spdlog::level::trace);  // Coppice decides which of its records are written
  logger->set_pattern("%l: %v");
  logger->info("the program's own line");

  coppice::runtime rt{{.level = coppice::log_level::warning,
                       .levels = {{"db", coppice::log_level::debug}},
                       .log = std::make_shared<to_spdlog>(logger)}};
  rt.run(opens_a_database);
}
