package inject

// Kind says what a request is for.
type Kind uint8

// The kinds of requests. All but KindTurn are forwarded without new recall
// and are not kept.
const (
	KindTurn    Kind = iota // a person's turn, or a tool round of one
	KindTitle               // a title, tags or follow-ups are asked for
	KindSummary             // the client compacts its history
	KindProbe               // quota, topic, autocompletion
	KindMachine             // no person wrote the newest user message
)
