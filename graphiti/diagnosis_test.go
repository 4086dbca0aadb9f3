package graphiti

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestDiagnose checks that Diagnose reads the kind of an error from the server's words, and
// that neither the diagnosis nor its remedy quotes them.
func TestDiagnose(t *testing.T) {
	for detail, want := range map[string]Diagnosis{
		"Error searching facts: Driver closed": DriverClosed,
		"Error searching facts: Error code: 401 - {'error': {'message': 'Incorrect API key provided: sk-my-secret'}}":   ModelKey,
		"Error searching facts: Error code: 404 - {'error': {'code': 'model_not_found', 'message': 'my-secret-model'}}": ModelUnknown,
		"Error searching facts: Error code: 429 - rate limit":                                                           ModelLimit,
		"Error searching facts: Connection error.":                                                                      ModelDown,
		"Error searching facts: Couldn't connect to localhost:7687 (my-secret)":                                         DatabaseDown,
		"my-secret dog is called Bruno":                                                                                 NoDiagnosis,
		"":                                                                                                              NoDiagnosis,
	} {
		err := fmt.Errorf("search: %w", &StatusError{Code: 503, Detail: detail})
		got := Diagnose(err)
		if got != want {
			t.Errorf("Diagnose(%q): %q, want %q", detail, got, want)
		}
		if strings.Contains(got.Says()+got.Remedy(), "secret") {
			t.Errorf("Diagnose(%q): %q or its remedy %q quotes the error", detail, got.Says(), got.Remedy())
		}
	}
	if d := Diagnose(errors.New("driver closed")); d != NoDiagnosis {
		t.Errorf("Diagnose of an error of our own: %q, want none", d)
	}
}

// TestEveryDiagnosisHasARemedy checks that each diagnosis has a text and a remedy of its
// own.
func TestEveryDiagnosisHasARemedy(t *testing.T) {
	says := make(map[string]Diagnosis)
	for d, row := range diagnoses {
		if row.says == "" || row.remedy == "" || says[row.remedy] != NoDiagnosis {
			t.Errorf("%s: %+v; want words, and a remedy that only it has (also that of %q)", d, row, says[row.remedy])
		}
		says[row.remedy] = d
	}
	for _, k := range kinds {
		if k.is.Remedy() == "" || k.words != strings.ToLower(k.words) {
			t.Errorf("kind %+v: want words in lower case, and a diagnosis with a remedy", k)
		}
	}
	for d, want := range map[Diagnosis]string{DriverClosed: "neo4j<6", NeverKept: "neo4j<6", WorkerDead: "restart Graphiti", ModelFails: "upgrade Graphiti"} {
		if !strings.Contains(d.Remedy(), want) {
			t.Errorf("remedy of %s: %q, want it to contain %q", d, d.Remedy(), want)
		}
	}
	if strings.Contains(ModelFails.Remedy(), "its worker has died") {
		t.Errorf("remedy of %s: %q; over MCP the worker lives", ModelFails, ModelFails.Remedy())
	}
}
