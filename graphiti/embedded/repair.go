package embedded

import (
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Repair describes the copying of a damaged file into a new one. The messages of a lost
// group are lost, too.
var Repair = sqlite.Salvage{
	Skip: []string{"vectors", "unread"},
	After: append([]string{
		"DELETE FROM messages WHERE grp NOT IN (SELECT id FROM groups) OR id >> 32 <> grp",
	}, ledger.Repair.After...),
}
