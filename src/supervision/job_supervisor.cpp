#include <coppice/supervision/job_supervisor.hpp>

namespace coppice {

result<ref<job_supervisor>> start_job_supervisor(runtime& rt, dynamic_supervisor_spec spec) {
  return start<job_supervisor>(rt, spec);
}
result<ref<job_supervisor>> start_job_supervisor(runtime& rt, const spawn_options& options,
                                                 dynamic_supervisor_spec spec) {
  return start<job_supervisor>(rt, options, spec);
}

}  // namespace coppice
