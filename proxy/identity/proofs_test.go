package identity

import (
	"maps"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// remembered returns the memories of accepted people by proof, in the form in which a store
// returns them.
func remembered(lists ...[]Person) map[[32]byte]string {
	known := make(map[[32]byte]string)
	for _, list := range lists {
		_, claims := Judge(list, known)
		maps.Copy(known, claims)
	}
	return known
}

// doubtsOf returns the doubts about some people.
func doubtsOf(list []Person) []*Doubt {
	r := new(Registry)
	r.Set(list)
	return r.Doubts()
}

// TestJudgeDoubtsMovedProofs checks that Judge doubts a person if a proof belonged to
// another memory before, or if all proofs of the person's memory are gone, and doubts no
// other people.
func TestJudgeDoubtsMovedProofs(t *testing.T) {
	k1, k2, k3 := []string{"sha256:01"}, []string{"sha256:02"}, []string{"sha256:03"}
	github := map[string]string{"github": "octocat"}
	josh, ann := Person{ID: "josh", Keys: k1, Identities: github}, Person{ID: "ann", Keys: k2}
	before := [][]Person{{josh, ann, {ID: "bare"}}}
	for _, tc := range []struct {
		name string
		now  []Person
		want string // the expected doubts
	}{
		{"the same", []Person{josh, ann}, ""},
		{"a key more", []Person{{ID: "josh", Keys: []string{"sha256:01", "sha256:03"}}, ann}, ""},
		{"a key in the place of another, an identity kept", []Person{{ID: "josh", Keys: k3, Identities: map[string]string{"GitHub": "OctoCat"}}}, ""},
		{"somebody who is new", []Person{josh, ann, {ID: "eve", Keys: k3}}, ""},
		{"somebody without proof gets one", []Person{{ID: "bare", Keys: k3}}, ""},
		{"somebody left", []Person{ann}, ""},
		{"renamed", []Person{{ID: "joshua", Keys: k1, Identities: github}, ann}, "joshua was user:josh"},
		{"renamed, with one of the proofs", []Person{{ID: "joshua", Identities: github}}, "joshua was user:josh"},
		{"renamed, and the id is somebody else's", []Person{{ID: "joshua", Keys: k1}, {ID: "josh", Keys: k3}}, "joshua was user:josh, taken by josh; josh may be joshua"},
		{"renamed, with the key of the memory", []Person{{ID: "joshua", Key: "user:josh", Keys: k1}}, ""},
		{"renamed, with the key of the memory and other proofs", []Person{{ID: "joshua", Key: "user:josh", Keys: k3}}, "joshua"},
		{"the id is somebody else's", []Person{{ID: "josh", Keys: k3}, ann}, "josh"},
		{"the only key is another one", []Person{josh, {ID: "ann", Keys: k3}}, "ann"},
		{"all that proved somebody is gone", []Person{{ID: "josh"}}, "josh"},
		{"two changed ids", []Person{{ID: "josh", Keys: k2}, {ID: "ann", Keys: k1}}, "josh was user:ann, taken by ann; ann was user:josh, taken by josh"},
		{"a key has another owner", []Person{{ID: "josh", Identities: github}, {ID: "ann", Keys: []string{"sha256:01", "sha256:02"}}}, "ann was user:josh, taken by josh"},
		{"a memory of another name", []Person{{ID: "josh", Key: "github_login:octocat", Keys: k1}}, "josh was user:josh"},
	} {
		known := remembered(before...)
		judged, claims := Judge(tc.now, known)
		var got []string
		for _, d := range doubtsOf(judged) {
			text := d.ID
			if d.Was != "" {
				text += " was " + d.Was
			}
			if d.Was == "" && d.Heir != "" {
				text += " may be " + d.Heir
			}
			if d.Taken != "" {
				text += ", taken by " + d.Taken
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: doubts %q, want %q", tc.name, got, tc.want)
		}
		maps.Copy(known, claims)
		again, more := Judge(judged, known)
		if diff := gocmp.Diff(judged, again, gocmp.AllowUnexported(Doubt{})); diff != "" || len(more) > 0 {
			t.Errorf("%s: judged again: %d claims, want none (-first +again):\n%s", tc.name, len(more), diff)
		}
		if back, _ := Judge(before[0][:2], known); len(doubtsOf(back)) > 0 {
			t.Errorf("%s: with the first people again: doubts %+v, want none", tc.name, doubtsOf(back))
		}
	}
}

// TestKeyOfAMemory checks that Resolve finds a person by the key of their memory, even if
// their id differs.
func TestKeyOfAMemory(t *testing.T) {
	people, err := readPeople(t, "users:\n- {id: joshua, key: josh, identities: {github: octocat}}\n- {id: ann, key: \"github_login:Ann\"}\n- {id: bo, key: \"user:discord:7\"}\n")
	must(t, err)
	r := &Registry{}
	r.Set(people)
	for named, want := range map[string]string{
		"user:joshua": "user:josh", "user:josh": "user:josh", "github_login:octocat": "user:josh", "user:ann": "github_login:ann",
		"github_login:ann": "github_login:ann", "user:bo": "user:discord:7", "user:discord:7": "user:discord:7", "user:eve": "user:eve",
	} {
		if got := r.Resolve(named); got != want {
			t.Errorf("Resolve(%s): %s, want %s", named, got, want)
		}
	}
}

// TestOneMemoryIsOnePersons checks that two people cannot share a memory, however it is
// named.
func TestOneMemoryIsOnePersons(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"users:\n- id: josh\n- id: joshua\n  key: user:josh\n", `users.yaml:4: key: "user:josh" is josh's already, so that joshua would share their memory; give each a key of their own, or make them one person`},
		{"users:\n- id: a\n  key: user:x\n- id: b\n  key: x\n", `users.yaml:3: key: "user:x" is b's already, so that a would share their memory; give each a key of their own, or make them one person`},
		{"users:\n- id: a\n  key: github_login:octocat\n- id: b\n  identities: {github: OctoCat}\n", `users.yaml:3: key: "github_login:octocat" is b's already, so that a would share their memory; give each a key of their own, or make them one person`},
		{"users:\n- id: a\n  key: \"\"\n", "users.yaml:3: key: not the key of a person; write e.g. user:josh or github_login:octocat"},
		{"users:\n- id: a\n  key: [josh]\n", "users.yaml:3: the value has the wrong form; docs/teams.md has an example"},
	} {
		if _, err := readPeople(t, tc.text); err == nil || err.Error() != tc.want {
			t.Errorf("%q: error %v, want %s", tc.text, err, tc.want)
		}
	}
}

// TestWhatToDoAboutADoubt checks that the remedy fits each doubt, and never suggests
// forgetting a memory that may be another person's.
func TestWhatToDoAboutADoubt(t *testing.T) {
	key := []string{"sha256:01"}
	known := remembered([]Person{{ID: "josh", Keys: key}})
	for _, tc := range []struct {
		name string
		now  []Person
		want []string
	}{
		{"renamed", []Person{{ID: "joshua", Keys: key}}, []string{"if joshua was renamed, write key: user:josh next to id: joshua in identity.users_file, and reload; if not, run graphiti-proxy registry accept joshua"}},
		{"given away", []Person{{ID: "josh", Keys: []string{"sha256:02"}}}, []string{"if josh is the same person with other keys, run graphiti-proxy registry accept josh; if it is another person, run graphiti-proxy memory forget --user josh, and then graphiti-proxy registry accept josh"}},
		{"both", []Person{{ID: "joshua", Keys: key}, {ID: "josh", Keys: []string{"sha256:02"}}}, []string{
			"if joshua was renamed, give josh another id, write key: user:josh next to id: joshua in identity.users_file, and reload; if only the key or the identity has another owner now, run graphiti-proxy registry accept joshua",
			"the stored memory may belong to  joshua: confirm joshua first",
		}},
	} {
		judged, _ := Judge(tc.now, known)
		doubts := doubtsOf(judged)
		if len(doubts) != len(tc.want) {
			t.Errorf("%s: doubts %+v, want %d", tc.name, doubts, len(tc.want))
			continue
		}
		for i := range doubts {
			if got := doubts[i].Remedy(); got != tc.want[i] || !doubts[i].Named() {
				t.Errorf("%s: remedy %q, named by ids %v; want %q, true", tc.name, got, doubts[i].Named(), tc.want[i])
			}
		}
	}
	if d := (&Doubt{ID: "a", Memory: "user:a", Was: "github_login:octocat"}); d.Named() {
		t.Error("Named is true for a doubt about github_login:octocat, which is no id")
	}
}
