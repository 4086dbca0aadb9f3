package graphiti

import (
	"errors"
	"strings"
)

// Diagnosis identifies a backend's fault. The list is closed.
type Diagnosis string

// The diagnoses.
const (
	NoDiagnosis  Diagnosis = ""
	DriverClosed Diagnosis = "driver_closed" // the server closes its database driver during work
	ModelKey     Diagnosis = "model_key"     // the model endpoint rejects the server's key
	ModelUnknown Diagnosis = "model_unknown" // the model endpoint lacks the model
	ModelLimit   Diagnosis = "model_limit"   // the model endpoint's limits are reached
	ModelDown    Diagnosis = "model_down"    // the model endpoint is unreachable
	DatabaseDown Diagnosis = "database_down" // the database is unreachable
	WorkerDead   Diagnosis = "worker_dead"   // the only worker has died
	NeverKept    Diagnosis = "never_kept"    // the only worker has never stored a message
	ModelFails   Diagnosis = "model_fails"   // workers live but drop messages
)

// diagnoses maps each diagnosis to its description and remedy.
var diagnoses = map[Diagnosis]struct{ says, remedy string }{
	DriverClosed: {"Graphiti's database driver is closed", `install neo4j<6 beside graphiti (pip install "neo4j<6") and restart it: getzep/graphiti#1622`},
	ModelKey:     {"Graphiti's model endpoint rejects its key", "correct Graphiti's OPENAI_API_KEY, or the key of its endpoint, and restart it"},
	ModelUnknown: {"Graphiti's model endpoint does not have the model", "set Graphiti's MODEL_NAME and embedding model to models of its endpoint, and restart it"},
	ModelLimit:   {"Graphiti's model endpoint enforces a limit", "raise the limits of Graphiti's model account, or lower its SEMAPHORE_LIMIT"},
	ModelDown:    {"Graphiti does not reach its model endpoint", "start the model endpoint that Graphiti uses, or correct its OPENAI_BASE_URL"},
	DatabaseDown: {"Graphiti does not reach its database", "start Graphiti's database, or correct its address in Graphiti's settings"},
	WorkerDead: {"Graphiti accepts messages and no longer stores any", "find the exception that ended its worker in Graphiti's log (getzep/graphiti#1707), fix its cause, then restart Graphiti: " +
		"often a rate limit (429), a model alias unknown to its endpoint (gpt-4.1-nano, text-embedding-3-small), an API key, or a group id with other characters than letters, digits, - and _"},
	NeverKept: {"Graphiti accepts messages and has stored none", "find the exception that ended the worker in Graphiti's log (getzep/graphiti#1707), fix its cause and restart Graphiti: " +
		`"Driver closed": install neo4j<6 beside graphiti (getzep/graphiti#1622); a model or a key that its endpoint does not take: correct it; a rate limit (429): raise it; ` +
		"no exception: its listing asks another database (FalkorDB with an old graphiti-core); upgrade Graphiti"},
	ModelFails: {"Graphiti accepts messages and stores none, although its workers run", "find \"Failed to process episode\" in the MCP server's log: its model endpoint fails (key, model name, rate limit); " +
		"fix that, and restart only for new settings; the proxy resends dropped turns; if the log has no such line, upgrade Graphiti: the server's listing asks another database"},
}

// Says returns a description of the diagnosis, or "" for NoDiagnosis.
func (d Diagnosis) Says() string { return diagnoses[d].says }

// Remedy returns the remedy for the diagnosis, or "" for NoDiagnosis.
func (d Diagnosis) Remedy() string { return diagnoses[d].remedy }

// kinds maps lower-case error texts of servers and their libraries to diagnoses. The raw
// text is never shown, because it may quote a conversation.
var kinds = []struct {
	words string
	is    Diagnosis
}{
	{"driver closed", DriverClosed},
	{"driver has been closed", DriverClosed},
	{"incorrect api key", ModelKey},
	{"invalid_api_key", ModelKey},
	{"authenticationerror", ModelKey},
	{"error code: 401", ModelKey},
	{"error code: 403", ModelKey},
	{"model_not_found", ModelUnknown},
	{"notfounderror", ModelUnknown},
	{"error code: 404", ModelUnknown},
	{"ratelimiterror", ModelLimit},
	{"rate limit exceeded", ModelLimit},
	{"insufficient_quota", ModelLimit},
	{"error code: 429", ModelLimit},
	{"serviceunavailable", DatabaseDown},
	{"couldn't connect to", DatabaseDown},
	{"apiconnectionerror", ModelDown},
	{"connection error.", ModelDown},
}

// Diagnose returns the diagnosis of a StatusError's detail.
func Diagnose(err error) Diagnosis {
	var s *StatusError
	if !errors.As(err, &s) {
		return NoDiagnosis
	}
	detail := strings.ToLower(s.Detail)
	for _, k := range kinds {
		if strings.Contains(detail, k.words) {
			return k.is
		}
	}
	return NoDiagnosis
}
