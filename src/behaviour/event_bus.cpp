#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include <coppice/behaviour/event_bus.hpp>

namespace coppice::detail {

exit_reason reason_of_thrown(std::string_view handling) {
  try {
    throw;
  } catch (const exit_with& x) {
    return x.reason();
  } catch (const std::exception& x) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name{abi::__cxa_demangle(typeid(x).name(), nullptr, nullptr, &status),
                                                      std::free};
    return exit_reason::error(status == 0 ? name.get() : typeid(x).name(), x.what(), std::string{handling});
  } catch (...) {
    return exit_reason::error("unknown", "", std::string{handling});
  }
}

}  // namespace coppice::detail
