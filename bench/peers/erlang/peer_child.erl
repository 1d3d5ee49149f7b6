%% The child of every supervision workload: a gen_server that answers calls and
%% crashes when it is told to. See peer_supervision.erl.
%%
%% It crashes by {stop, Reason, State} with a reason that is an error: faster than
%% exit(Reason), which has to be caught, and than an exception with its stack
%% trace, which is what `throw` is for. Reports of crashes are switched off (run.py: logger_level none).
-module(peer_child).
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, handle_continue/2]).

start_link(Role) -> gen_server:start_link(?MODULE, Role, []).

init(idle) -> {ok, 0};
init(hibernated) -> {ok, 0, hibernate};
%% Tells a client that it is up.
init({announced, Client, Id}) ->
    Client ! {up, Id, self()},
    {ok, 0};
%% Counts itself; the one that makes it N tells a client.
init({counted, Counter, N, Client}) ->
    count(Counter, N, Client),
    {ok, 0};
%% Counts itself, too, and crashes as soon as it is up, until there were N.
init({doomed, Counter, N, Client}) ->
    case count(Counter, N, Client) of
        I when I < N -> {ok, 0, {continue, crash}};
        _ -> {ok, 0}
    end.

count(Counter, N, Client) ->
    I = atomics:add_get(Counter, 1, 1),
    I =:= N andalso (Client ! done),
    I.

handle_continue(crash, State) -> {stop, crash, State}.

handle_call(N, _From, State) -> {reply, N, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info(crash, State) -> {stop, crash, State};
handle_info(throw, _State) -> error(crash).
