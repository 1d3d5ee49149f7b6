%% The supervision workloads of the Erlang side: OTP's supervisor over
%% gen_servers (peer_child). Called by peer_bench.
%%
%% Configuration, chosen to be Erlang's best sensible one:
%%  * A supervisor of OTP 25 keeps a list of the restarts of its window and walks
%%    through it at each restart. The workloads of restart_latency and restarts
%%    spread their children over supervisors of one child each, so that every
%%    list stays short; restarts_window is what one supervisor does with a long
%%    one.
%%  * Their window is 1 s, the shortest that there is. That of restarts_window is
%%    60 s: only so are its 20,000 restarts in one window.
%%  * Children tell that they are up by a message from init, or count themselves
%%    in an atomic: neither needs another process.
-module(peer_supervision).
-behaviour(supervisor).

-export([run/1]).
-export([init/1]).

-define(SHORT_WINDOW, 1).
-define(LONG_WINDOW, 60).

run(restart_latency) -> restart_latency(crash, 50);
run(restart_latency_p99) -> restart_latency(crash, 99);
%% With an exception. A process that has failed can't go on, so that a restart
%% stands for it.
run(actor_restart) -> restart_latency(throw, 50);
run(actor_resume) -> restart_latency(throw, 50);
run(actor_restart_fail) -> restart_latency(crash, 50);
run(actor_resume_fail) -> restart_latency(crash, 50);
run(restarts) -> restarts(100, 1, ?SHORT_WINDOW, 5);
run(restarts_window) -> restarts(1, 100, ?LONG_WINDOW, 1);
run(restarts_window_us) -> percentile(warm_laps(restart_laps(1, 20000, ?LONG_WINDOW, crash)), 50);
run(restarts_growth) -> growth(warm_laps(restart_laps(1, 20000, ?LONG_WINDOW, crash)));
run(start_children) -> element(1, start_and_stop(100000));
run(stop_children) -> element(2, start_and_stop(100000));
run(one_for_all) -> one_for_all(1000, 55);
run(server_call) -> server_calls(1, 500000);
run(server_call100) -> server_calls(100, 10000);
run(mem_supervised) -> mem_supervised(100000, idle);
run(mem_supervised_min) -> mem_supervised(100000, hibernated).

%% --------------------------------------------------------------- utilities

%% The limit of restarts is never reached.
init({Strategy, Window, Children}) ->
    {ok, {#{strategy => Strategy, intensity => 1000000000, period => Window}, Children}}.

child(Id, Role) -> #{id => Id, start => {peer_child, start_link, [Role]}}.

start_supervisor(Strategy, Children) -> start_supervisor(Strategy, ?SHORT_WINDOW, Children).

start_supervisor(Strategy, Window, Children) ->
    {ok, Supervisor} = supervisor:start_link(?MODULE, {Strategy, Window, Children}),
    Supervisor.

seconds_since(Start) ->
    erlang:convert_time_unit(erlang:monotonic_time() - Start, native, nanosecond) / 1.0e9.

%% Without the first tenth of them.
warm_laps(Laps) -> lists:nthtail(length(Laps) div 10, Laps).

%% How many times longer the last tenth takes than the first.
growth(Laps) ->
    Part = length(Laps) div 10,
    Last = lists:nthtail(length(Laps) - Part, Laps),
    percentile(Last, 50) / percentile(lists:sublist(Laps, Part), 50).

%% In us.
percentile(Laps, Percent) ->
    Sorted = lists:sort(Laps),
    Lap = lists:nth(1 + length(Laps) * Percent div 100, Sorted),
    erlang:convert_time_unit(Lap, native, nanosecond) / 1.0e3.

%% ----------------------------------------------------------------- restarts

%% From the order to crash until the successor has answered a call, one after the
%% other.
restart_latency(How, Percent) ->
    percentile(warm_laps(restart_laps(100, 20000, ?SHORT_WINDOW, How)), Percent).

restart_laps(Supervisors, N, Window, How) ->
    [start_supervisor(one_for_one, Window, [child(Id, {announced, self(), Id})])
     || Id <- lists:seq(1, Supervisors)],
    Pids = maps:from_list([receive {up, Id, Pid} -> {Id, Pid} end
                           || Id <- lists:seq(1, Supervisors)]),
    restart_laps(0, N, Supervisors, Pids, How, []).

restart_laps(N, N, _, _, _, Laps) -> lists:reverse(Laps);
restart_laps(I, N, Supervisors, Pids, How, Laps) ->
    Id = 1 + I rem Supervisors,
    Child = map_get(Id, Pids),
    Start = erlang:monotonic_time(),
    Child ! How,
    Successor = receive {up, Id, Pid} -> Pid end,
    I = gen_server:call(Successor, I),
    Lap = erlang:monotonic_time() - Start,
    restart_laps(I + 1, N, Supervisors, Pids#{Id := Successor}, How, [Lap | Laps]).

%% The median of some storms, in k/s; one storm before them warms up. Each has
%% supervisors of its own.
restarts(Supervisors, Each, Window, Storms) ->
    storm(Supervisors, Each, Window, 2000),
    Rates = lists:sort([storm(Supervisors, Each, Window, 20000) || _ <- lists:seq(1, Storms)]),
    lists:nth(1 + Storms div 2, Rates).

%% All children crash as soon as they are up, N times together.
storm(Supervisors, Each, Window, N) ->
    Counter = atomics:new(1, []),
    Role = {doomed, Counter, N + Supervisors * Each, self()},
    Children = [child(Id, Role) || Id <- lists:seq(1, Each)],
    Start = erlang:monotonic_time(),
    [start_supervisor(one_for_one, Window, Children) || _ <- lists:seq(1, Supervisors)],
    peer_bench:await(1),
    N / seconds_since(Start) / 1.0e3.

%% The crash of one until all are up again, in ms.
one_for_all(N, Rounds) ->
    Counter = atomics:new(1, []),
    Role = {counted, Counter, N, self()},
    Supervisor = start_supervisor(one_for_all, [child(Id, Role) || Id <- lists:seq(1, N)]),
    peer_bench:await(1),
    Laps = [one_for_all_lap(Supervisor, N, Counter) || _ <- lists:seq(1, Rounds)],
    percentile(warm_laps(Laps), 50) / 1.0e3.

one_for_all_lap(Supervisor, N, Counter) ->
    {_, Child, _, _} = lists:keyfind(N div 2, 1, supervisor:which_children(Supervisor)),
    atomics:put(Counter, 1, 0),
    Start = erlang:monotonic_time(),
    Child ! crash,
    peer_bench:await(1),
    erlang:monotonic_time() - Start.

%% ----------------------------------------------------------- start and stop

%% In ms: until start_link has returned, which it does when all are up; and from
%% the order to stop until the supervisor has gone.
start_and_stop(N) ->
    Children = [child(Id, idle) || Id <- lists:seq(1, N)],
    Start = erlang:monotonic_time(),
    Supervisor = start_supervisor(one_for_one, Children),
    Up = seconds_since(Start),
    unlink(Supervisor),
    Ref = monitor(process, Supervisor),
    Stop = erlang:monotonic_time(),
    exit(Supervisor, shutdown),
    receive {'DOWN', Ref, process, Supervisor, shutdown} -> ok end,
    {Up * 1.0e3, seconds_since(Stop) * 1.0e3}.

%% ------------------------------------------------------------------- calls

server_calls(Clients, Calls) ->
    Supervisor = start_supervisor(one_for_one, [child(server, idle)]),
    [{server, Server, _, _}] = supervisor:which_children(Supervisor),
    peer_bench:calls_to([Server], Clients, Calls).

%% ------------------------------------------------------------------ memory

%% All that is there for a supervised server: its process, and what the
%% supervisor keeps for it.
mem_supervised(N, Role) ->
    Start = fun() ->
        Supervisor = start_supervisor(one_for_one, [child(Id, Role) || Id <- lists:seq(1, N)]),
        erlang:garbage_collect(Supervisor)
    end,
    peer_bench:bytes_of(Start) / N.
