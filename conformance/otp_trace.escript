#!/usr/bin/env escript
%%! +S 1:1 -kernel logger_level none
%% Runs supervision scenarios on Erlang/OTP's own supervisor and writes their traces.
%%
%%     otp_trace.escript FILE                   prints the trace
%%     otp_trace.escript --out FOLDER FILE...   many at a time; the trace of x.txt becomes FOLDER/x.trace
%%
%% README.md beside this file describes the scenario language and the trace. There is one scheduler (+S 1:1): every
%% process that is ready to run has run before a process that slept goes on, so it is certain when all processes are
%% idle. For the same reason all code is loaded first: a supervisor that waits for a module to be read looks idle.
-module(otp_trace).
-mode(compile).
-export([main/1, start_worker/2, start_sup/2, init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(AT_ONCE, 32).
-define(LIMIT_MS, 60000).

main(["--out", Folder | Files]) when Files =/= [] ->
    load_all(),
    Jobs = [{File, filename:join(Folder, filename:basename(File, ".txt") ++ ".trace")} || File <- Files],
    halt(case pool(Jobs, #{}, 0) of 0 -> 0; _ -> 1 end);
main([[C | _] = File]) when C =/= $- ->
    load_all(),
    process_flag(trap_exit, true),
    try play(File, fun(Line) -> io:put_chars([Line, $\n]) end) of _ -> halt(0)
    catch _:Why -> complain(File, Why), halt(1) end;
main(_) ->
    io:put_chars(standard_error, "usage: otp_trace.escript FILE | otp_trace.escript --out FOLDER FILE...\n"),
    halt(2).

load_all() ->
    [code:ensure_loaded(M) || App <- [kernel, stdlib], {ok, Ms} <- [application:get_key(App, modules)], M <- Ms].

%% --- many scenarios at a time ------------------------------------------------

pool([], Running, Failed) when map_size(Running) =:= 0 -> Failed;
pool([{File, Trace} | Jobs], Running, Failed) when map_size(Running) < ?AT_ONCE ->
    {Pid, Ref} = spawn_monitor(fun() -> play_into(File, Trace) end),
    Timer = erlang:send_after(?LIMIT_MS, self(), {late, Ref}),
    pool(Jobs, Running#{Ref => {File, Pid, Timer}}, Failed);
pool(Jobs, Running, Failed) ->
    receive
        {'DOWN', Ref, process, _, Why} when is_map_key(Ref, Running) ->
            #{Ref := {File, _, Timer}} = Running,
            erlang:cancel_timer(Timer),
            Bad = case Why of normal -> 0; _ -> complain(File, Why), 1 end,
            pool(Jobs, maps:remove(Ref, Running), Failed + Bad);
        {late, Ref} when is_map_key(Ref, Running) ->
            #{Ref := {File, Pid, _}} = Running,
            complain(File, {not_finished_after_ms, ?LIMIT_MS}),
            erlang:demonitor(Ref, [flush]), exit(Pid, kill),
            pool(Jobs, maps:remove(Ref, Running), Failed + 1);
        {late, _} -> pool(Jobs, Running, Failed)
    end.

complain(File, Why) -> io:format(standard_error, "~s: ~0p~n", [File, Why]).

%% The trace is written at the end: a slow disk would delay the processes that wait for the printer.
play_into(File, Trace) ->
    process_flag(trap_exit, true),
    put(lines, []),
    play(File, fun(Line) -> put(lines, [[Line, $\n] | get(lines)]) end),
    ok = file:write_file(Trace, lists:reverse(get(lines))).

%% --- one scenario: a table of specs and processes, and a process that prints -------------------------------------

-record(run, {table, printer}).

play(File, Write) ->
    {ok, Bin} = file:read_file(File),
    Lines = [string:trim(hd(string:split(L, "#"))) || L <- string:split(binary_to_list(Bin), "\n", all)],
    Words = [string:lexemes(L, " \t") || L <- Lines, L =/= ""],
    Run = #run{table = ets:new(scenario, [public]), printer = self()},
    Played = spawn_monitor_player(Run, Words),
    print_loop(Played, Write, 0).

%% The process that plays is the parent of the root. The process that calls this function prints for all processes.
spawn_monitor_player(Run, Words) ->
    spawn_monitor(fun() -> process_flag(trap_exit, true), play_words(Run, Words) end).

play_words(Run, Words) ->
    [declare(Run, D) || [K | _] = D <- Words, K =:= "supervisor" orelse K =:= "worker"],
    [Root | _] = [Id || ["supervisor", Id | _] <- Words],
    print(Run, "> start"),
    answer(Run, start_sup(Run, Root)),
    report(Run, Root),
    [begin print(Run, "> " ++ lists:join(" ", S)), step(Run, S, Root), report(Run, Root) end || ["step" | S] <- Words],
    print(Run, "> end"), shut_down(Run, Root), settle(Run, Root), print(Run, ".").

%% --- declarations -----------------------------------------------------------

declare(Run, ["supervisor", Id, Parent, Strategy, MaxR, MaxT | Opts]) ->
    O = options(Opts),
    Flags = #{strategy => list_to_atom(Strategy), intensity => list_to_integer(MaxR), period => list_to_integer(MaxT),
              auto_shutdown => list_to_atom(maps:get("auto_shutdown", O, "never"))},
    Spec = with_options(O, #{id => Id, start => {?MODULE, start_sup, [Run, Id]}, type => supervisor}),
    put_value(Run, {flags, Id}, Flags), put_child(Run, Parent, Id, Spec);
declare(Run, ["worker", Id, Parent | Opts]) ->
    put_child(Run, Parent, Id, worker_spec(Run, Id, options(Opts))).

worker_spec(Run, Id, O) ->
    put_value(Run, {options, Id}, O),
    put_value(Run, {starts, Id}, string:lexemes(maps:get("starts", O, ""), ",")),
    Spec = with_options(O, #{id => Id, start => {?MODULE, start_worker, [Run, Id]}, type => worker}),
    put_value(Run, {spec, Id}, Spec),
    Spec.

with_options(O, Spec) ->
    maps:fold(fun("restart", V, S) -> S#{restart => list_to_atom(V)};
                 ("significant", V, S) -> S#{significant => list_to_atom(V)};
                 ("shutdown", V, S) -> S#{shutdown => try list_to_integer(V) catch _:_ -> list_to_atom(V) end};
                 (_, _, S) -> S end, Spec, O).

put_child(Run, Parent, Id, Spec) ->
    put_value(Run, {spec, Id}, Spec),
    put_value(Run, {children, Parent}, children(Run, Parent) ++ [Id]).

options(L) -> maps:from_list([list_to_tuple(string:split(O, "=")) || O <- L]).
put_value(#run{table = T}, Key, Value) -> ets:insert(T, {Key, Value}).
find(#run{table = T}, Key, Default) -> case ets:lookup(T, Key) of [{_, V}] -> V; [] -> Default end.
known(#run{table = T}, Key) -> [{_, V}] = ets:lookup(T, Key), V.
children(Run, P) -> find(Run, {children, P}, []).
supervisors_of(Run, P) -> [C || C <- children(Run, P), find(Run, {flags, C}, none) =/= none].
pid(Run, Id) ->
    P = find(Run, {pid, Id}, undefined),
    case is_pid(P) andalso is_process_alive(P) of true -> P; false -> undefined end.
has_begun(Run, Id) -> put_value(Run, {pid, Id}, self()), put_value(Run, {process, self()}, Id).

%% --- the processes ----------------------------------------------------------

start_sup(Run, Id) -> supervisor:start_link(?MODULE, {sup, Run, Id}).
start_worker(Run, Id) -> gen_server:start_link(?MODULE, {worker, Run, Id}, []).

init({sup, Run, Id}) ->
    event(Run, "init " ++ Id), has_begun(Run, Id),
    {ok, {known(Run, {flags, Id}), [known(Run, {spec, C}) || C <- children(Run, Id)]}};
init({worker, Run, Id}) ->
    {Start, Rest} = case known(Run, {starts, Id}) of [] -> {"ok", []}; [S | L] -> {S, L} end,
    put_value(Run, {starts, Id}, Rest),
    case Start of
        "fail" -> event(Run, "failed " ++ Id), {stop, failed};
        "ignore" -> event(Run, "ignored " ++ Id), ignore;
        "ok" ->
            O = known(Run, {options, Id}),
            process_flag(trap_exit, maps:get("trap", O, "true") =:= "true"),
            has_begun(Run, Id),
            event(Run, "started " ++ Id),
            {ok, {Run, Id, maps:get("stubborn", O, "false") =:= "true"}}
    end.

handle_call(_, _, S) -> {reply, ok, S}.
handle_cast({stop, Reason}, S) -> {stop, Reason, S}.
handle_info(_, S) -> {noreply, S}.
terminate(Reason, {Run, Id, Stubborn}) ->
    event(Run, "stopping " ++ Id ++ " " ++ reason(Reason)),
    case Stubborn andalso Reason =:= shutdown of true -> timer:sleep(infinity); false -> ok end.

reason({shutdown, _}) -> "shutdown+";
reason(R) when is_atom(R) -> atom_to_list(R);
reason(_) -> "other".

%% --- the steps --------------------------------------------------------------

step(Run, ["crash", Id], _) -> to_worker(Run, Id, crash);
step(Run, ["exit", Id, R], _) -> to_worker(Run, Id, exit_reason(R));
step(Run, ["kill", Id], _) ->
    case pid(Run, Id) of undefined -> print(Run, "= no_process"); P -> print(Run, "= ok"), exit(P, kill) end;
step(Run, ["wait", Ms], _) -> timer:sleep(list_to_integer(Ms)), print(Run, "= ok");
step(Run, ["stop"], Root) -> print(Run, "= ok"), shut_down(Run, Root);
step(Run, ["start_child", Sup, Id | Opts], _) ->
    Spec = spec(Run, Id, Opts),
    on(Run, Sup, fun(P) -> answer(Run, supervisor:start_child(P, Spec)) end);
step(Run, ["terminate_child", Sup, Id], _) ->
    on(Run, Sup, fun(P) -> answer(Run, supervisor:terminate_child(P, Id)) end);
step(Run, ["restart_child", Sup, Id], _) ->
    on(Run, Sup, fun(P) -> answer(Run, supervisor:restart_child(P, Id)) end);
step(Run, ["delete_child", Sup, Id], _) ->
    on(Run, Sup, fun(P) -> answer(Run, supervisor:delete_child(P, Id)) end);
step(Run, ["count", Sup], _) ->
    on(Run, Sup, fun(P) -> print(Run, "= " ++ answer(supervisor:count_children(P))) end);
step(Run, ["burst", Sup | Words], Root) ->
    case pid(Run, Sup) of undefined -> print(Run, "= no_process"); P -> burst(Run, P, parts(Words, []), Root) end.

%% The supervisor is suspended until all signals of the burst have arrived.
burst(Run, P, Parts, Root) ->
    erlang:suspend_process(P),
    Asked = [part(Run, P, Part) || Part <- Parts],
    erlang:resume_process(P),
    Answers = [case A of {text, Text} -> Text; {asked, R} -> response(gen_server:receive_response(R, infinity)) end
               || A <- Asked],
    settle(Run, Root),
    print(Run, "= " ++ lists:join(", ", Answers)).

parts([], []) -> [];
parts([], Part) -> [lists:reverse(Part)];
parts([";" | Words], Part) -> [lists:reverse(Part) | parts(Words, [])];
parts([Word | Words], Part) -> parts(Words, [Word | Part]).

part(Run, _, ["crash", Id]) -> ended(Run, Id, fun(P) -> gen_server:cast(P, {stop, crash}) end);
part(Run, _, ["exit", Id, R]) -> ended(Run, Id, fun(P) -> gen_server:cast(P, {stop, exit_reason(R)}) end);
part(Run, _, ["kill", Id]) -> ended(Run, Id, fun(P) -> exit(P, kill) end);
part(Run, P, ["start_child", Id | Opts]) -> {asked, gen_server:send_request(P, {start_child, spec(Run, Id, Opts)})};
part(_, P, ["count"]) -> {asked, gen_server:send_request(P, count_children)};
part(_, P, [Call, Id]) -> {asked, gen_server:send_request(P, {list_to_atom(Call), Id})}.

%% When 'DOWN' arrives here, the supervisor has the exit signal too: one scheduler sends both without a break.
ended(Run, Id, End) ->
    case pid(Run, Id) of
        undefined -> {text, "no_process"};
        P -> M = monitor(process, P), End(P), receive {'DOWN', M, process, P, _} -> {text, "ok"} end
    end.

response({reply, Answer}) -> answer(Answer);
response({error, _}) -> "exit".

spec(Run, Id, []) -> known(Run, {spec, Id});
spec(Run, Id, Opts) -> worker_spec(Run, Id, options(Opts)).

exit_reason("shutdown+") -> {shutdown, done};
exit_reason(R) -> list_to_atom(R).

counts(C) ->
    lists:join(" ", [atom_to_list(K) ++ ":" ++ integer_to_list(proplists:get_value(K, C))
                     || K <- [specs, active, supervisors, workers]]).

to_worker(Run, Id, Reason) ->
    case pid(Run, Id) of
        undefined -> print(Run, "= no_process");
        P -> print(Run, "= ok"), gen_server:cast(P, {stop, Reason})
    end.

on(Run, Sup, F) ->
    case pid(Run, Sup) of
        undefined -> print(Run, "= no_process");
        P -> try F(P) catch exit:_ -> print(Run, "= exit") end
    end.

answer(Run, Answer) -> print(Run, "= " ++ answer(Answer)).
answer([_ | _] = Counts) -> counts(Counts);
answer({ok, _}) -> "ok";
answer({ok, _, _}) -> "ok";
answer(ok) -> "ok";
answer({error, {already_started, _}}) -> "error already_started";
answer({error, R}) when is_atom(R), R =/= failed -> "error " ++ atom_to_list(R);
answer({error, {start_spec, {K, _}}}) -> "error " ++ atom_to_list(K);
answer({error, {K, _}}) when K =:= duplicate_child_name; K =:= bad_combination -> "error " ++ atom_to_list(K);
answer({error, _}) -> "error failed".

shut_down(Run, Root) ->
    case pid(Run, Root) of
        undefined -> ok;
        P -> exit(P, shutdown), receive {'EXIT', P, _} = M -> self() ! M end
    end.

%% --- the trace --------------------------------------------------------------

%% Every event is printed before the process that caused it goes on, so the order is causal.
event(Run, Text) -> print(Run, "  " ++ Text).
print(#run{printer = Printer}, Text) -> R = make_ref(), Printer ! {self(), R, Text}, receive {R, done} -> ok end.
printed(#run{printer = Printer}) -> R = make_ref(), Printer ! {self(), R}, receive {R, N} -> N end.

print_loop({Player, Monitor} = Played, Write, N) ->
    receive
        {From, R, Text} -> Write(Text), From ! {R, done}, print_loop(Played, Write, N + 1);
        {From, R} -> From ! {R, N}, print_loop(Played, Write, N);
        {'DOWN', Monitor, process, Player, normal} -> ok;
        {'DOWN', Monitor, process, Player, Why} -> exit(Why)
    end.

%% Waits until all processes are idle three times in a row and nothing was printed meanwhile. A supervisor that waits
%% for a child to end does not answer until then, so this also waits until its time limits have passed.
settle(Run, Root) -> settle(Run, Root, printed(Run), 3).
settle(_, _, _, 0) -> ok;
settle(Run, Root, N, K) ->
    timer:sleep(2), ask_all(Run, Root),
    case printed(Run) of
        N -> settle(Run, Root, N, case all_idle(Run) of true -> K - 1; false -> 3 end);
        M -> settle(Run, Root, M, 3)
    end.

ask_all(Run, Id) ->
    case pid(Run, Id) of undefined -> ok; P -> catch supervisor:count_children(P) end,
    [ask_all(Run, C) || C <- supervisors_of(Run, Id)].

all_idle(#run{table = T}) ->
    lists:all(fun([P]) -> case process_info(P, [status, message_queue_len]) of
                              undefined -> ets:delete(T, {process, P}), true;
                              [{status, waiting}, _] -> true;
                              _ -> false
                          end end, ets:match(T, {{process, '$1'}, '_'})).

%% Prints the state of every supervisor, and the end of the root when it has ended.
report(Run, Root) ->
    settle(Run, Root), state(Run, Root),
    receive {'EXIT', P, R} when is_pid(P) -> print(Run, "! root exited " ++ reason(R)) after 0 -> ok end.

state(Run, Sup) ->
    case pid(Run, Sup) of
        undefined -> print(Run, "| " ++ Sup ++ " down");
        P -> Kids = lists:reverse(supervisor:which_children(P)),
             print(Run, "| " ++ lists:join(" ", [Sup | [Id ++ ":" ++ alive(C) || {Id, C, _, _} <- Kids]]))
    end,
    [state(Run, C) || C <- supervisors_of(Run, Sup)].
alive(P) when is_pid(P) -> "alive";
alive(A) -> atom_to_list(A).
