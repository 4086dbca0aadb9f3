package embedded

import (
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Repair describes the copying of a damaged file into a new one. The messages of a lost
// group are lost, too.
var Repair = sqlite.Salvage{
	Skip: []string{"vectors", "undistilled"},
	After: []string{
		"DELETE FROM messages WHERE grp NOT IN (SELECT id FROM groups) OR id >> 32 <> grp",
		"DELETE FROM fact_sources WHERE message NOT IN (SELECT id FROM messages)",
		"DELETE FROM facts WHERE id >> 32 <> grp OR id NOT IN (SELECT fact FROM fact_sources)",
		"UPDATE facts SET ended_by = NULL, valid_until = NULL WHERE ended_by NOT IN (SELECT id FROM facts)",
		"DELETE FROM fact_keys WHERE fact NOT IN (SELECT id FROM facts)",
		"INSERT OR IGNORE INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0)",
	},
}
