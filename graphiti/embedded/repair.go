package embedded

import (
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Repair says how a damaged file is read into a new one. What is of a group that is
// lost is lost.
var Repair = sqlite.Salvage{
	Skip: []string{"vectors", "unread"},
	After: append([]string{
		"DELETE FROM messages WHERE grp NOT IN (SELECT id FROM groups) OR id >> 32 <> grp",
	}, ledger.Repair.After...),
}
