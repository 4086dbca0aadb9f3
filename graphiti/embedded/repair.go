package embedded

import "github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"

// Repair says how a damaged file is read into a new one: its messages are
// written again when that is opened, so that their places and the sizes of
// their groups fit each other. What is of a group that is lost is lost.
var Repair = sqlite.Salvage{
	Skip: []string{"speakers", "vectors", "unread"},
	Into: map[string]string{"messages": "messages_1"},
	After: []string{
		"DELETE FROM messages_1 WHERE grp NOT IN (SELECT id FROM groups)",
		"UPDATE groups SET size = 0, talk = '', said = 0",
	},
}
