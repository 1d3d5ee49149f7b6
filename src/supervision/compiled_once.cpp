// The templates of the supervisors, instantiated once, so that their users do not compile them.
#include <coppice/supervision/job_supervisor.hpp>

namespace coppice::detail {

template const server_type& server_type_of<supervisor>() noexcept;
template result<pid> spawn_object<supervisor>(kernel&, birth&&, supervisor_spec&&);
template result<pid> spawn_object<supervisor>(kernel&, birth&&, const supervisor_spec&);
template task<result<ref<supervisor>>> start_server<supervisor>(self&, spawn_options, supervisor_spec);

template const server_type& server_type_of<dynamic_supervisor>() noexcept;
template result<pid> spawn_object<dynamic_supervisor>(kernel&, birth&&);
template result<pid> spawn_object<dynamic_supervisor>(kernel&, birth&&, dynamic_supervisor_spec&&);
template result<pid> spawn_object<dynamic_supervisor>(kernel&, birth&&, const dynamic_supervisor_spec&);

template const server_type& server_type_of<job_supervisor>() noexcept;
template result<pid> spawn_object<job_supervisor>(kernel&, birth&&);
template result<pid> spawn_object<job_supervisor>(kernel&, birth&&, dynamic_supervisor_spec&&);
template result<pid> spawn_object<job_supervisor>(kernel&, birth&&, const dynamic_supervisor_spec&);

}  // namespace coppice::detail
