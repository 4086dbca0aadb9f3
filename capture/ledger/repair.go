package ledger

import "github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"

// Repair says how a damaged file is read into a new one. The ledger has one name
// and each of its counts, whatever was lost of them.
var Repair = sqlite.Salvage{After: []string{
	"DELETE FROM instance WHERE rowid > (SELECT min(rowid) FROM instance)",
	"INSERT INTO instance SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM instance)",
	"INSERT OR IGNORE INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0)",
}}
