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
		"2 of the waiting turns have been sent, but are not listed by the memory yet; nothing new for 40s\n": {UnderWay: 2, Quiet: &since},
		"2 of the waiting turns have been sent, but are not listed by the memory yet\n":                      {UnderWay: 2},
	} {
		var b strings.Builder
		PrintQueue(&b, &q)
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q lacks %q", b.String(), want)
		}
	}
}

// TestClientsAreShown checks that a status prints the problems of clients by name and
// version, with a remedy.
func TestClientsAreShown(t *testing.T) {
	for want, clients := range map[string][]graphiti.ClientSigns{
		"1 request of Claude Code 2.1.400 has no memory: its project is unknown":      {{Name: "Claude Code", Version: "2.1.400", NoPlace: 1}},
		"2 requests of Claude Code 2.1.400 have no memory: their project is unknown":  {{Name: "Claude Code", Version: "2.1.400", NoPlace: 2}},
		"name the project in the header X-Graphiti-Workspace, and please report the ": {{Name: "Qwen Code", NoPlace: 1}},
		"": nil,
	} {
		var out strings.Builder
		(&Status{Clients: clients}).Print(&out)
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "please report") != (want != "") {
			t.Errorf("%+v: got %s, want %q in it", clients, got, want)
		}
	}
}

// TestPlacesThatAreMissingAreShown checks that a status prints requests and projects
// without their memory, with the setting or the command that helps.
func TestPlacesThatAreMissingAreShown(t *testing.T) {
	for want, s := range map[string]Status{
		"2 requests of Code-Puppy 0.0.946 have the memory of their conversation only: they offer tools and name no directory; to do: name the project in a header X-Graphiti-Workspace, or set workspace.optional to true\n": {Clients: []graphiti.ClientSigns{{Name: "Code-Puppy", Version: "0.0.946", NoDirectory: 2}}},
		"1 request of opencode has no memory: its directory is not on this machine; to do: name the project in a header X-Graphiti-Workspace, or set workspace.remote_paths to true if each path is one project\n":           {Clients: []graphiti.ClientSigns{{Name: "opencode", NotHere: 1}}},
		"project   /home/me/app2 has the remote of github_repo:github.com/acme/app, but a separate memory\n          to do: if it is yours, run in it: graphiti-proxy workspace join .\n":                                    {Apart: []graphiti.Apart{{Directory: "/home/me/app2", Workspace: "github_repo:github.com/acme/app", Remedy: "if it is yours, run in it: graphiti-proxy workspace join ."}}},
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

// TestStatusCountsOutcomes checks that a status prints the outcomes with their reasons,
// the most frequent first.
func TestStatusCountsOutcomes(t *testing.T) {
	var b strings.Builder
	s := Status{Memory: MemoryStatus{Backend: "embedded", State: StateWorking, Outcomes: map[string]int64{"recalled": 2, "empty, weak": 7, "empty, routine": 7}}}
	s.Print(&b)
	if want := "requests since the start: 7 empty (routine), 7 empty (weak), 2 recalled\n"; !strings.Contains(b.String(), want) {
		t.Errorf("%q lacks %q", b.String(), want)
	}
}

// TestGraphitiPrice checks that the status estimates the calls and tokens of Graphiti's model a
// day, and counts a first day as a whole one.
func TestGraphitiPrice(t *testing.T) {
	for want, age := range map[string]time.Duration{
		"Graphiti got 100 episodes since the start: about 240 calls and 620000 tokens of its model a day": time.Hour,
		"Graphiti got 100 episodes since the start: about 60 calls and 155000 tokens of its model a day":  96 * time.Hour,
	} {
		var b strings.Builder
		s := Status{Started: time.Now().Add(-age), Queue: capture.QueueStatus{Episodes: 100}}
		if s.Print(&b); !strings.Contains(b.String(), want) {
			t.Errorf("%q lacks %q", b.String(), want)
		}
	}
}
