package embedded

import (
	"math"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

// The flags of a message's note.
const (
	isAsking    = 1 << iota // it ends with a question
	isOnlyAsked             // it only asks, or states nothing: "noted"
	isModels                // from a model
	isCurated               // it was promoted or summarised
	isFact                  // a model distilled it from messages
	isDistilled             // a model has distilled facts from it
	isNeeded                // a fact of a kind that requests need
	isOfUser                // a fact that matters in all of the person's projects
	isWho                   // a fact that states who the person is, or their home
	isSpecific              // it names something to type
	isKeyless               // a fact without keys, such as Graphiti's
)

// isNoStatement are the flags of messages without a person's statement.
const isNoStatement = isModels | isAsking | isOnlyAsked

// noteOf returns the note of a message.
func noteOf(role graphiti.RoleType, speaker, content string, said time.Time) messageNote {
	n := messageNote{Length: uint32(min(len(content), math.MaxUint32)), Day: dayOf(said)} //nolint:gosec // it fits
	if strings.Contains(content, "\n"+graphiti.LinesOmitted) {                            // of a long message
		n.Length = max(n.Length, shownMax+1)
	}
	toModel := role == graphiti.RoleUser && speaker == ""
	switch {
	case words.IsQuestion(content):
		n.Flags |= isAsking
		if words.OnlyAsks(content) {
			n.Flags |= isOnlyAsked
		}
	case toModel && words.AsksSomething(content):
		n.Flags |= isAsking | isOnlyAsked
	case content != "" && (words.Nods(content) || toModel && !words.States(content)):
		n.Flags |= isOnlyAsked
	}
	if role == graphiti.RoleAssistant && specific(content) {
		n.Flags |= isSpecific
	}
	switch {
	case role == graphiti.RoleAssistant && speaker == "":
		n.Flags |= isModels
	case role == graphiti.RoleSystem:
		n.Flags |= isCurated
	}
	return n
}

const secondsOfDay = 24 * 60 * 60

// dayOf returns the local day of a time, counted from 1970.
func dayOf(t time.Time) int32 {
	y, m, d := t.Local().Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay
	return int32(max(math.MinInt32, min(day, math.MaxInt32))) //nolint:gosec // it fits
}

// startOf returns the beginning of a day.
func startOf(day int32) time.Time { return time.Unix(int64(day)*secondsOfDay, 0).UTC() }

// indexedAs returns a message as input of the index.
func indexedAs(place int64, role graphiti.RoleType, speaker, content string, said time.Time) indexedMessage {
	n := noteOf(role, speaker, content, said)
	return indexedMessage{Place: place, Speaker: speaker, Text: plain(content), Note: n, Asks: n.Flags&isAsking != 0 && n.Flags&isOnlyAsked != 0}
}

// mayRepeat reports whether a message may add little to the question; its text decides.
func mayRepeat(n *messageNote, asked sketch) bool {
	others, words := n.otherWords(asked)
	return words > 2 && float64(others) < newPart*float64(words)
}
