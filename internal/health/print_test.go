package health

import (
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestTheMemoryIsQuiet checks that the printed queue reports for how long the memory has
// listed no new turn.
func TestTheMemoryIsQuiet(t *testing.T) {
	since := time.Now().Add(-40 * time.Second)
	for want, q := range map[string]capture.QueueStatus{
		"2 sent turns not listed by the memory yet; nothing new for 40s\n": {UnderWay: 2, Quiet: &since},
		"2 sent turns not listed by the memory yet\n":                      {UnderWay: 2},
	} {
		var b strings.Builder
		PrintQueue(&b, &q)
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q lacks %q", b.String(), want)
		}
	}
}

// TestProblemsArePrinted checks that a status prints each problem with its remedy.
func TestProblemsArePrinted(t *testing.T) {
	for want, s := range map[string]Status{
		"client    Claude Code 2.1.400, 1 time: no memory, because the project is unknown\n          to do: name the project in a header X-Graphiti-Workspace, and report the client's version\n": {Clients: []graphiti.ClientSigns{{Name: "Claude Code", Version: "2.1.400", NoPlace: 1}}},
		"client    Code-Puppy, 2 times: the memory of the conversation only":  {Clients: []graphiti.ClientSigns{{Name: "Code-Puppy", NoDirectory: 2}}},
		"client    opencode, 1 time: no memory, because the directory is not": {Clients: []graphiti.ClientSigns{{Name: "opencode", NotHere: 1}}},
		"client    Codex, 4 times: an answer that was not stored\n":           {Clients: []graphiti.ClientSigns{{Name: "Codex", LostAnswers: 4}}},
		"project   /home/me/app2 has the remote of github_repo:github.com/acme/app, but a separate memory\n          to do: if it is yours, run in it: graphiti-proxy workspace join .\n": {Apart: []graphiti.Apart{{Directory: "/home/me/app2", Workspace: "github_repo:github.com/acme/app", Remedy: "if it is yours, run in it: graphiti-proxy workspace join ."}}},
		"people    ann has no memory: somebody had the id\n          to do: say who it is\n":                                                                                              {Unconfirmed: []Unconfirmed{{ID: "ann", Why: "somebody had the id", Remedy: "say who it is"}}},
		"people    2 more people of identity.users_file have no memory\n":                                                                                                                 {Unconfirmed: make([]Unconfirmed, maxUnconfirmed+2)},
		"problem   the memory is off: memory.backend is off\n          to do: set it\n":                                                                                                   {Memory: MemoryStatus{State: StateOff, Why: "memory.backend is off", Remedy: "set it"}},
		"problem   1 group blocked until a forget succeeds":                                                                                                                               {Blocked: []string{"g"}},
		"delivery  3 turns could not be delivered\n":                                                                                                                                      {Queue: capture.QueueStatus{Dead: 3}},
		"quota     the disk is full\n":                                                                                                                                                    {Queue: capture.QueueStatus{Full: []string{"the disk is full"}}},
		"pending   3 lines waiting for your confirmation\n          to do: graphiti-proxy memory":                                                                                         {PendingLines: 3},
		"settings  changed settings need a restart: admin.listen\n":                                                                                                                       {Waiting: []string{"admin.listen"}},
	} {
		var out strings.Builder
		if s.Print(&out); !strings.Contains(out.String(), want) {
			t.Errorf("got %s, want %q in it", out.String(), want)
		}
	}
}

// TestMemoryThatIsOffRecallsNothing checks that a status does not print recall and
// ingestion as on if the memory is off.
func TestMemoryThatIsOffRecallsNothing(t *testing.T) {
	for state, want := range map[MemoryState]bool{StateOff: false, StateWorking: true} {
		var out strings.Builder
		(&Status{Memory: MemoryStatus{Backend: "graphiti", State: state, Recall: true, Ingest: true}}).Print(&out)
		if got := strings.Contains(out.String(), "recall on, ingestion on"); got != want {
			t.Errorf("%s: got %s, want recall and ingestion on: %v", state, out.String(), want)
		}
	}
}

// TestStatusCountsOutcomes checks that a status prints the outcomes that occurred, with their
// reasons, the most frequent first.
func TestStatusCountsOutcomes(t *testing.T) {
	var b strings.Builder
	s := Status{Memory: MemoryStatus{Backend: "embedded", State: StateWorking, Outcomes: map[string]int64{"recalled": 2, "empty, weak": 7, "empty, routine": 7}},
		Messages: map[graphiti.FateName]int64{graphiti.FateStored: 3, graphiti.FateHeld: 0, graphiti.FateLost: 0}}
	s.Print(&b)
	for _, want := range []string{"requests since the start: 7 empty (routine), 7 empty (weak), 2 recalled\n", "messages since the start: 3 stored\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q lacks %q", b.String(), want)
		}
	}
}

// TestGraphitiPrice checks that the status counts Graphiti's episodes and names the measured cost of a turn.
func TestGraphitiPrice(t *testing.T) {
	var b strings.Builder
	s := Status{Queue: capture.QueueStatus{Episodes: 100}}
	if s.Print(&b); !strings.Contains(b.String(), "Graphiti got 100 episodes since the start; ") || !strings.Contains(b.String(), "900 to 2,700 tokens a turn") {
		t.Errorf("%q lacks the episodes, or the cost of a turn", b.String())
	}
}
