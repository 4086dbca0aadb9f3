package main

// The tables below list the exceptions from the rules of TestLayout by file and name, with
// their reasons. The test fails if an exception is no longer needed.

// longFunctions lists functions that do not fit a screen.
var longFunctions = map[string]string{
	"bench/recall.go:recall":                     "a straight line: one measurement after the other",
	"proxy/proxytest/messages.go:readMessages":   "a table: one case for each kind of part",
	"proxy/proxytest/responses.go:readResponses": "a table: one case for each kind of item",
}

// sameNames lists types with the same name in more than maxSameName packages.
var sameNames = map[string]string{
	"Client":  "of Graphiti, once for each of its services, and of the proxy",
	"DB":      "the contract of two databases, and both of them",
	"Dialect": "the contract of the APIs, and each of them",
	"Options": "the input of a constructor",
	"Server":  "a listener's server, for clients, for operators and for the database",
}

// sleepingTests lists tests that wait for time to pass.
var sleepingTests = map[string]string{
	"capture/deliver/sim_test.go:sim.Episodes":                       "waits in a bubble",
	"capture/deliver/sim_test.go:sim.Write":                          "waits in a bubble",
	"capture/deliver/sim_test.go:sim.run":                            "waits in a bubble",
	"capture/deliver/sim_test.go:simulate":                           "waits in a bubble",
	"capture/graph_test.go:until":                                    "waits in a bubble",
	"capture/pending_test.go:TestAbandonedToolLoopIsKept":            "a table of steps that a bubble takes",
	"cmd/graphiti-proxy/crash_test.go:TestKillsLoseAndRepeatNoTurn":  "waits for processes of its own",
	"cmd/graphiti-proxy/replicas_test.go:TestReplicasActAsOne":       "waits for processes of its own",
	"cmd/graphiti-proxy/replicas_test.go:TestReplicasCopyToGraphiti": "waits for processes of its own",
	"internal/e2e/graphiti_test.go:TestRealGraphiti":                 "waits for programs of others",
	"internal/e2e/graphiti_test.go:world.eventually":                 "waits for programs of others",
	"internal/e2e/litellm_test.go:pythonServer":                      "waits for programs of others",
}
