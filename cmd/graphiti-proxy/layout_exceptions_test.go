package main

// What breaks a rule of TestLayout, and why it may: each thing by its file and its
// name. One that breaks the rule no longer fails the test, too.

// longFunctions do not fit a screen.
var longFunctions = map[string]string{
	"bench/recall.go:recall":                     "a straight line: one measurement after the other",
	"proxy/proxytest/messages.go:readMessages":   "a table: one case for each kind of part",
	"proxy/proxytest/responses.go:readResponses": "a table: one case for each kind of item",
}

// largeInterfaces have more methods than anybody remembers.
var largeInterfaces = map[string]string{}

// sleepingTests wait for time to pass.
var sleepingTests = map[string]string{
	"capture/bench_test.go:BenchmarkBacklog":                                  "measures now and then what goes on",
	"capture/bench_test.go:BenchmarkDelivery":                                 "measures now and then what goes on",
	"capture/graph_test.go:until":                                             "waits in a bubble",
	"capture/pending_test.go:TestAbandonedToolLoopIsKept":                     "a table of steps that a bubble takes",
	"capture/verify_test.go:TestRandomFaults":                                 "spreads what happens over time",
	"cmd/graphiti-proxy/crash_test.go:TestNothingIsLostAndNothingIsKeptTwice": "waits for processes of its own",
	"cmd/graphiti-proxy/replicas_test.go:TestReplicasActAsOne":                "waits for processes of its own",
	"internal/e2e/graphiti_test.go:TestRealGraphiti":                          "waits for programs of others",
	"internal/e2e/graphiti_test.go:world.eventually":                          "waits for programs of others",
	"internal/e2e/lines_test.go:lines.until":                                  "waits for programs of others",
	"internal/e2e/litellm_test.go:liteLLM":                                    "waits for programs of others",
	"internal/e2e/operator_test.go:TestOperatorsDay":                          "waits for programs of others",
	"internal/e2e/operator_test.go:operator.until":                            "waits for programs of others",
}
