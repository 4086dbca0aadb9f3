package main

// What breaks a rule of TestLayout, and why it may. "first edition" stands for
// what is still to be moved or rewritten; such a line goes with the step that
// does it. An interface or a function is called by its name, so that it may move.

// silentPackages do not say what they own and must not know.
var silentPackages = map[string]string{}

// longFunctions do not fit a screen.
var longFunctions = map[string]string{
	"Server.useTool": "a table: one case for each tool",
	"readMessages":   "a table: one case for each kind of part",
	"readResponses":  "a table: one case for each kind of item",
	"recall":         "a straight line: one measurement after the other",
}

// largeInterfaces have more methods than anybody remembers.
var largeInterfaces = map[string]string{}

// sleepingTests wait for time to pass.
var sleepingTests = map[string]string{
	"BenchmarkBacklog":                       "measures now and then what goes on",
	"BenchmarkDelivery":                      "measures now and then what goes on",
	"TestAbandonedToolLoopIsKept":            "a table of steps that a bubble takes",
	"TestMeaning":                            "waits for a server over HTTP",
	"TestNothingIsLostAndNothingIsKeptTwice": "waits for processes of its own",
	"TestOperatorsDay":                       "waits for programs of others",
	"TestRandomFaults":                       "spreads what happens over time",
	"TestRealGraphiti":                       "waits for programs of others",
	"TestReplicasActAsOne":                   "waits for processes of its own",
	"TestSilentBodyIsEnded":                  "is a client that is slow over a socket",
	"lines.until":                            "waits for programs of others",
	"liteLLM":                                "waits for programs of others",
	"operator.until":                         "waits for programs of others",
	"until":                                  "waits for a server, or in a bubble",
	"within":                                 "waits for Redis",
	"waitFor":                                "waits for servers, sockets and files",
	"waitUntil":                              "waits for processes, sockets and files",
	"world.until":                            "waits for programs of others",
}
