%% The Erlang side of the benchmark. One workload per emulator:
%%
%%   erl +S 2:2 +P 3000000 -noinput -pa DIR -run peer_bench main WORKLOAD
%%
%% prints "WORKLOAD VALUE" and halts; bench/run.py compiles the module, says
%% which unit each value has, and adds the flags that single workloads need.
%%
%% Configuration, chosen to be Erlang's best sensible one (OTP 25, JIT):
%%  * Messages are bare integers between processes that know each other, the
%%    smallest message there is: nothing is copied. Only what needs a reply
%%    address (gen_server:call) has one.
%%  * Processes that many others send to keep their queue off heap, so that
%%    sending does not contend on their main lock and their garbage
%%    collections do not scan the queue.
%%  * Processes are spawned by module, function and arguments, which has no
%%    closure to copy.
%%  * Emulator flags of single workloads are in run.py, with the reasons.
%%
%% fanin8_high and fanin100_high are not in run.py's table: they are the fan-ins
%% with a receiver of high priority, which is faster still, but which Erlang's
%% manual advises against.
-module(peer_bench).
-behaviour(gen_server).

-export([main/1]).
-export([init/1, handle_call/3, handle_cast/2]).
-export([pong/1, pinger/4, ring_node/1, counter/2, sender/2, one_shot/2, skynet_node/3,
         spawn_parent/2, client/3, armer/4, idle/0, hub/2]).
-export([calls_to/3, bytes_of/1, await/1]).  % for peer_supervision

-define(OFF_HEAP, [{message_queue_data, off_heap}]).

main([Name]) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({value, run(list_to_atom(Name))}) end),
    receive
        {'DOWN', Ref, process, Pid, {value, Value}} ->
            io:format("~s ~.4f~n", [Name, float(Value)]),
            %% No orderly stop: it would end a million processes one by one.
            halt(0);
        {'DOWN', Ref, process, Pid, Reason} ->
            io:format(standard_error, "~s failed: ~p~n", [Name, Reason]),
            halt(1)
    end.

run(pingpong) -> round_trips_per_s(1, 1000000) / 1.0e6;
run(pairs) -> 2 * round_trips_per_s(1000, 1000) / 1.0e6;
run(fanin8) -> fanin(8, ?OFF_HEAP);
run(fanin100) -> fanin(100, ?OFF_HEAP);
run(fanin8_high) -> fanin(8, [{priority, high} | ?OFF_HEAP]);
run(fanin100_high) -> fanin(100, [{priority, high} | ?OFF_HEAP]);
run(ring) -> ring(503, 1000000);
run(spawn) -> spawn_n(1000000);
run(skynet) -> skynet();
run(call) -> calls(1, 1, 500000);
run(call100) -> calls(100, 1, 10000);
run(callpairs) -> calls(1000, 1000, 1000);
run(timers) -> timers(1000000);
run(timer_fire) -> timer_fire(100000);
run(monitor) -> monitor_n(1000000);
run(links) -> links(100000);
run(mem_process_100k) -> mem_process(100000);
run(mem_process_1m) -> mem_process(1000000);
run(mem_receiver_100k) -> mem_receiver(100000);
run(mem_receiver_1m) -> mem_receiver(1000000);
run(Name) -> peer_supervision:run(Name).

%% --------------------------------------------------------------- utilities

now_s() -> erlang:monotonic_time(nanosecond) / 1.0e9.

%% Waits for N messages `done`.
await(0) -> ok;
await(N) -> receive done -> await(N - 1) end.

repeat(0, _) -> ok;
repeat(N, F) -> F(), repeat(N - 1, F).

%% The next state of the random numbers of the timers, and a number of whole
%% milliseconds from 0 to Limit made of it. Takes a few ns, all in small integers,
%% so it does not show in the figures. The CAF side has the same one.
next_random(State) -> (State * 1664525 + 1013904223) band 16#ffffffff.

random_ms(State, Limit) -> ((State bsr 8) * (Limit + 1)) bsr 24.

%% CPU time of all threads, user and system. statistics(runtime) has the user
%% part only; the kernel's count is also finer than its clock tick.
cpu_ms() ->
    Files = filelib:wildcard("/proc/self/task/*/schedstat"),
    lists:sum([first_integer(F) || F <- Files]) / 1.0e6.

first_integer(File) ->
    {ok, Text} = file:read_file(File),
    [First | _] = binary:split(Text, <<" ">>),
    binary_to_integer(First).

%% statm counts pages of 4 KiB on x86-64.
resident_bytes() ->
    {ok, Text} = file:read_file("/proc/self/statm"),
    [_, Resident | _] = binary:split(Text, <<" ">>, [global]),
    binary_to_integer(Resident) * 4096.

%% ------------------------------------------------- pingpong, pairs, and ring

round_trips_per_s(Pairs, Trips) ->
    Pingers = [start_pair(Trips) || _ <- lists:seq(1, Pairs)],
    Start = now_s(),
    [P ! go || P <- Pingers],
    await(Pairs),
    Pairs * Trips / (now_s() - Start).

start_pair(Trips) ->
    Pong = spawn(?MODULE, pong, [none]),
    Pinger = spawn(?MODULE, pinger, [go, Pong, Trips, self()]),
    Pong ! Pinger,
    Pinger.

pinger(go, Pong, Trips, Main) ->
    receive go -> pinger(run, Pong, Trips, Main) end;
pinger(run, _, 0, Main) ->
    Main ! done;
pinger(run, Pong, N, Main) ->
    Pong ! N,
    receive _ -> pinger(run, Pong, N - 1, Main) end.

pong(none) -> receive Pinger -> pong(Pinger) end;
pong(Pinger) -> receive N -> Pinger ! N, pong(Pinger) end.

ring(Nodes, Hops) ->
    Last = spawn(?MODULE, ring_node, [none]),
    First = lists:foldl(fun(_, Next) -> spawn(?MODULE, ring_node, [{Next, self()}]) end,
                        Last, lists:seq(2, Nodes)),
    Last ! {First, self()},
    Start = now_s(),
    First ! Hops,
    await(1),
    Hops / (now_s() - Start) / 1.0e6.

ring_node(none) -> receive {Next, Main} -> ring_loop(Next, Main) end;
ring_node({Next, Main}) -> ring_loop(Next, Main).

ring_loop(Next, Main) ->
    receive
        0 -> Main ! done;
        N -> Next ! N - 1, ring_loop(Next, Main)
    end.

%% ------------------------------------------------------------------- fan-in

fanin(Senders, Options) ->
    Total = 5000000,
    To = spawn_opt(?MODULE, counter, [Total, self()], Options),
    Pids = [spawn(?MODULE, sender, [To, Total div Senders]) || _ <- lists:seq(1, Senders)],
    Start = now_s(),
    [P ! go || P <- Pids],
    await(1),
    Total / (now_s() - Start) / 1.0e6.

counter(0, Main) -> Main ! done;
counter(N, Main) -> receive _ -> counter(N - 1, Main) end.

sender(To, N) -> receive go -> burst(To, N) end.

burst(_, 0) -> ok;
burst(To, N) -> To ! N, burst(To, N - 1).

%% ---------------------------------------------------------- spawn and skynet

spawn_n(N) ->
    To = spawn_opt(?MODULE, counter, [N, self()], ?OFF_HEAP),
    Start = now_s(),
    spawn(?MODULE, spawn_parent, [To, N]),
    await(1),
    N / (now_s() - Start) / 1.0e3.

spawn_parent(_, 0) -> ok;
spawn_parent(To, N) ->
    spawn(?MODULE, one_shot, [To, N]),
    spawn_parent(To, N - 1).

one_shot(To, N) -> To ! N.

skynet() ->
    Start = now_s(),
    spawn(?MODULE, skynet_node, [self(), 0, 1000000]),
    receive 499999500000 -> ok end,
    (now_s() - Start) * 1.0e3.

skynet_node(Parent, First, 1) ->
    Parent ! First;
skynet_node(Parent, First, Size) ->
    skynet_children(10, First, Size div 10),
    Parent ! skynet_sum(10, 0).

skynet_children(0, _, _) -> ok;
skynet_children(N, First, Part) ->
    spawn(?MODULE, skynet_node, [self(), First, Part]),
    skynet_children(N - 1, First + Part, Part).

skynet_sum(0, Sum) -> Sum;
skynet_sum(N, Sum) -> receive X -> skynet_sum(N - 1, Sum + X) end.

%% -------------------------------------------------------------------- calls

calls(Clients, Servers, Calls) ->
    calls_to([start_server() || _ <- lists:seq(1, Servers)], Clients, Calls).

calls_to(List, Clients, Calls) ->
    Pids = list_to_tuple(List),
    Servers = length(List),
    Callers = [spawn(?MODULE, client, [element(1 + I rem Servers, Pids), Calls, self()])
               || I <- lists:seq(1, Clients)],
    Start = now_s(),
    [P ! go || P <- Callers],
    await(Clients),
    Clients * Calls / (now_s() - Start) / 1.0e6.

start_server() ->
    {ok, Pid} = gen_server:start(?MODULE, active, []),
    Pid.

client(Server, Calls, Main) ->
    receive go -> client_loop(Server, Calls, Main) end.

client_loop(_, 0, Main) -> Main ! done;
client_loop(Server, N, Main) ->
    _ = gen_server:call(Server, N),
    client_loop(Server, N - 1, Main).

init(active) -> {ok, 0};
init(hibernated) -> {ok, 0, hibernate}.

handle_call(N, _From, State) -> {reply, N, State}.

handle_cast(_, State) -> {noreply, State}.

%% ------------------------------------------------------------------- timers

%% Ends with the arming: waiting up to 5 s for the rest would measure nothing.
timers(N) ->
    To = spawn_opt(?MODULE, counter, [N, self()], ?OFF_HEAP),
    Start = now_s(),
    start_armer(To, N, 5000),
    receive armed -> ok end,
    (now_s() - Start) * 1.0e9 / N.

timer_fire(N) ->
    To = spawn_opt(?MODULE, counter, [N, self()], ?OFF_HEAP),
    Before = cpu_ms(),
    start_armer(To, N, 2000),
    await(1),
    cpu_ms() - Before.

start_armer(To, N, Limit) ->
    spawn(?MODULE, armer, [To, N, Limit, self()]).

armer(To, N, Limit, Main) ->
    arm(To, N, Limit, 1),
    Main ! armed.

arm(_, 0, _, _) -> ok;
arm(To, N, Limit, Random) ->
    erlang:send_after(random_ms(Random, Limit), To, N),
    arm(To, N - 1, Limit, next_random(Random)).

%% -------------------------------------------------------- monitors and links

idle() -> receive stop -> ok end.

monitor_n(N) ->
    Target = spawn(?MODULE, idle, []),
    Start = now_s(),
    monitor_loop(Target, N),
    N / (now_s() - Start) / 1.0e6.

monitor_loop(_, 0) -> ok;
monitor_loop(Target, N) ->
    Ref = erlang:monitor(process, Target),
    erlang:demonitor(Ref),
    monitor_loop(Target, N - 1).

links(N) ->
    Hub = spawn(?MODULE, hub, [N, self()]),
    Children = receive {children, Pids} -> Pids end,
    [erlang:monitor(process, P) || P <- Children],
    process_flag(message_queue_data, off_heap),
    Start = now_s(),
    Hub ! die,
    await_down(N),
    (now_s() - Start) * 1.0e3.

hub(N, Main) ->
    Main ! {children, [spawn_link(?MODULE, idle, []) || _ <- lists:seq(1, N)]},
    receive die -> exit(boom) end.

await_down(0) -> ok;
await_down(N) -> receive {'DOWN', _, process, _, boom} -> await_down(N - 1) end.

%% ------------------------------------------------------------------- memory

%% Read from the system and not from erlang:memory(), to count what CAF's figure
%% counts: the allocators' waste, and the process table where it gets used.
bytes_each(N, StartOne) ->
    bytes_of(fun() -> repeat(N, StartOne) end) / N.

bytes_of(Start) ->
    erlang:garbage_collect(),
    Before = resident_bytes(),
    Start(),
    erlang:garbage_collect(),
    timer:sleep(100),
    resident_bytes() - Before.

%% The initial heap is most of a process by default. spawn_opt cannot make it
%% smaller than the emulator's default, so run.py lowers that one (+hms).
mem_process(N) ->
    bytes_each(N, fun() -> spawn(?MODULE, idle, []) end).

%% Hibernated, since that is smaller: 1,160 bytes; awake with +hms 12: 1,610.
mem_receiver(N) ->
    bytes_each(N, fun() -> {ok, _} = gen_server:start(?MODULE, hibernated, []) end).
